#pragma once

#include <cstdint>
#include <string>

namespace broach::cache {

/// "brch": says that an SQLite file is this index.
inline constexpr std::int32_t kIndexApplicationId = 0x62726368;

/// The version of the tables. A newer file is read, never written; an older one is migrated, or set
/// aside and rebuilt where no step leads here.
inline constexpr std::int32_t kIndexVersion = 1;

/// The statements that make the tables in an empty file.
std::string index_schema();

}  // namespace broach::cache
