#pragma once

#include <cstdint>
#include <string>

namespace SQLite {
class Database;
}  // namespace SQLite

namespace broach::cache {

/// "brch": says that an SQLite file is this index.
inline constexpr std::int32_t kIndexApplicationId = 0x62726368;

/// The version of the tables. A newer file is read, never written; an older one is migrated, or set
/// aside and rebuilt where no step leads here.
inline constexpr std::int32_t kIndexVersion = 2;

/// The statements that make a version's tables in an empty file. A database holds their very text:
/// whoever changes it changes the version.
std::string index_schema(std::int32_t version = kIndexVersion);

/// The statements that make version 1 into version 2, which has more columns of limits.
std::string index_migration();

/// What a database has that `index_schema` of its version does not make, or lacks, in words; empty
/// where the two are the same. A trigger of another's could hang or change every query.
std::string foreign_part(SQLite::Database& database, std::int32_t version = kIndexVersion);

}  // namespace broach::cache
