#include "cache/index_schema.hpp"

#include <SQLiteCpp/SQLiteCpp.h>

#include <compare>
#include <functional>
#include <set>
#include <span>
#include <string>
#include <utility>

#include <fmt/core.h>

#include "cache/limit_fields.hpp"

namespace broach::cache {
namespace {

constexpr const char* kTables = R"sql(
CREATE TABLE entry (
  key TEXT PRIMARY KEY, source_hash TEXT NOT NULL, target TEXT NOT NULL, family TEXT NOT NULL,
  shape TEXT NOT NULL, compiler TEXT NOT NULL, kind TEXT NOT NULL, bytes INTEGER NOT NULL,
  digest TEXT NOT NULL, created INTEGER NOT NULL, last_used INTEGER NOT NULL,
  hits INTEGER NOT NULL DEFAULT 0, compile_ms INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE failure (
  key TEXT PRIMARY KEY, target TEXT NOT NULL, toolchain TEXT NOT NULL, code INTEGER NOT NULL,
  message TEXT NOT NULL, log TEXT NOT NULL, created INTEGER NOT NULL, expires INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE receipt (
  key TEXT NOT NULL, device TEXT NOT NULL, driver TEXT NOT NULL, gates TEXT NOT NULL,
  broach_version TEXT NOT NULL, created INTEGER NOT NULL,
  PRIMARY KEY (key, device, driver, broach_version)
) WITHOUT ROWID;
CREATE TABLE journal (
  family TEXT NOT NULL, shape TEXT NOT NULL, target TEXT NOT NULL, count INTEGER NOT NULL,
  last INTEGER NOT NULL, PRIMARY KEY (family, shape, target)
);
CREATE INDEX journal_last ON journal (last);

-- The store's size, kept by triggers: a publish must not count a million rows. NULL, which stays
-- NULL whatever is added, until the rows have been brought in line with the objects once.
CREATE TABLE usage (id INTEGER PRIMARY KEY CHECK (id = 1), objects INTEGER, bytes INTEGER);
INSERT INTO usage VALUES (1, NULL, NULL);
CREATE TRIGGER entry_added AFTER INSERT ON entry BEGIN
  UPDATE usage SET objects = objects + 1, bytes = bytes + new.bytes;
END;
CREATE TRIGGER entry_removed AFTER DELETE ON entry BEGIN
  UPDATE usage SET objects = objects - 1, bytes = bytes - old.bytes;
END;
CREATE TRIGGER entry_resized AFTER UPDATE OF bytes ON entry BEGIN
  UPDATE usage SET bytes = bytes - old.bytes + new.bytes;
END;
)sql";

/// One of the two tables that have a function's numbers.
struct LimitTable {
  const char* name;
  const char* columns;  ///< Those before the function, with their types.
  const char* keys;     ///< Their names.
};
constexpr LimitTable kLimitTables[] = {
    {"launch_limit", "", ""},
    {"device_limit", "device TEXT NOT NULL, driver TEXT NOT NULL, ", "device, driver, "}};

// Version 1 knew no stated geometry and no parameters.
std::span<const LimitField> limit_fields(std::int32_t version) {
  constexpr std::size_t kOfVersion1 = 15;
  return std::span(kLimitFields).first(version == 1 ? kOfVersion1 : kLimitFields.size());
}

// A number that is not known is NULL.
std::string statement_of(const LimitTable& table, std::int32_t version) {
  std::string sql = fmt::format("CREATE TABLE {} (key TEXT NOT NULL, {}function TEXT NOT NULL, ",
                                table.name, table.columns);
  for (const LimitField& field : limit_fields(version)) {
    sql += fmt::format("{} INTEGER, ", field.name);
  }
  if (version > 1) sql += fmt::format("{} TEXT, ", kParameterField);
  return sql + fmt::format("source TEXT NOT NULL, PRIMARY KEY (key, {}function)) WITHOUT ROWID;\n",
                           table.keys);
}

/// A row of sqlite_master.
struct Part {
  std::string kind;
  std::string name;
  std::string table;
  std::string sql;

  auto operator<=>(const Part&) const = default;
};

// Until `take` returns false.
void for_each_part(SQLite::Database& database, const std::function<bool(Part)>& take) {
  SQLite::Statement row(database,
                        "SELECT type, name, tbl_name, coalesce(sql, '') FROM sqlite_master");
  const auto text = [&](int at) { return row.getColumn(at).getString(); };
  while (row.executeStep() && take({text(0), text(1), text(2), text(3)})) {
  }
}

}  // namespace

std::string index_schema(std::int32_t version) {
  std::string sql = kTables;
  for (const LimitTable& table : kLimitTables) sql += statement_of(table, version);
  return sql + fmt::format("PRAGMA application_id = {};\nPRAGMA user_version = {};\n",
                           kIndexApplicationId, version);
}

// The tables are made anew: those that are altered would have another text.
std::string index_migration() {
  std::string sql;
  for (const LimitTable& table : kLimitTables) {
    std::string columns = fmt::format("key, {}function, ", table.keys);
    for (const LimitField& field : limit_fields(1)) columns += fmt::format("{}, ", field.name);
    columns += "source";
    sql += fmt::format(
        "CREATE TEMP TABLE kept AS SELECT {0} FROM main.{1}; DROP TABLE main.{1};\n{2}"
        "INSERT INTO main.{1} ({0}) SELECT {0} FROM temp.kept; DROP TABLE temp.kept;\n",
        columns, table.name, statement_of(table, 2));
  }
  return sql + "PRAGMA user_version = 2;\n";
}

std::string foreign_part(SQLite::Database& database, std::int32_t version) {
  const auto parts_of = [](std::int32_t of_version) {
    SQLite::Database made(":memory:", SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE);
    made.exec(index_schema(of_version));
    std::set<Part> parts;
    for_each_part(made, [&](Part part) { return parts.insert(std::move(part)).second; });
    return parts;
  };
  static const std::set<Part> current = parts_of(kIndexVersion);
  const std::set<Part> ours = version == kIndexVersion ? current : parts_of(version);
  std::string stranger;
  std::size_t same = 0;
  for_each_part(database, [&](const Part& part) {
    if (ours.contains(part)) {
      ++same;
    } else {
      const bool active = part.kind == "trigger" || part.kind == "view";
      stranger = fmt::format("it has a {} that is not ours", active ? part.kind : "table or index");
    }
    return stranger.empty();
  });
  if (stranger.empty() && same != ours.size()) stranger = "it lacks a table of ours";
  return stranger;
}

}  // namespace broach::cache
