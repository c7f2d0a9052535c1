// The statements of Index: every value is bound, never pasted.
#include <algorithm>
#include <utility>

#include <fmt/core.h>

#include "cache/index.hpp"
#include "cache/index_run.hpp"
#include "cache/limit_fields.hpp"

namespace broach::cache {
namespace {

constexpr int kMaxJournalRows = 10'000;
constexpr int kMaxFailureRows = 10'000;
constexpr std::size_t kMaxLogBytes = std::size_t{1} << 20;

void bind(SQLite::Statement& statement, int at, std::uint64_t value) {
  statement.bind(at, static_cast<std::int64_t>(value));
}

void bind(SQLite::Statement& statement, int at, const std::optional<std::uint32_t>& value) {
  if (value) {
    statement.bind(at, std::int64_t{*value});
  } else {
    statement.bind(at);
  }
}

std::uint64_t unsigned_at(const SQLite::Statement& row, int at) {
  return static_cast<std::uint64_t>(std::max<std::int64_t>(row.getColumn(at).getInt64(), 0));
}

// A time before all times has no distance to now.
std::int64_t time_at(const SQLite::Statement& row, int at) {
  return std::max<std::int64_t>(row.getColumn(at).getInt64(), 0);
}

std::string text_at(const SQLite::Statement& row, int at) { return row.getColumn(at).getString(); }

Key key_at(const SQLite::Statement& row, int at) {
  const auto key = Key::from_hex(text_at(row, at));
  return key ? *key : Key{};
}

std::string limit_columns() {
  std::string columns;
  for (const LimitField& field : kLimitFields) columns += fmt::format(", {}", field.name);
  return columns + fmt::format(", {}, source", kParameterField);
}

std::string placeholders(std::size_t count) {
  std::string marks = "?";
  for (std::size_t i = 1; i < count; ++i) marks += ",?";
  return marks;
}

void bind_limits(SQLite::Statement& statement, int at, const LaunchLimits& limits) {
  for (const LimitField& field : kLimitFields) bind(statement, at++, limits.*field.member);
  if (limits.parameter_bytes) {
    statement.bind(at, parameter_text(*limits.parameter_bytes));
  } else {
    statement.bind(at);
  }
  statement.bind(at + 1, limits.source);
}

LaunchLimits limits_at(const SQLite::Statement& row, int function, int at) {
  LaunchLimits limits;
  limits.function = text_at(row, function);
  for (const LimitField& field : kLimitFields) {
    const SQLite::Column column = row.getColumn(at++);
    if (!column.isNull()) limits.*field.member = column.getUInt();
  }
  if (!row.getColumn(at).isNull()) limits.parameter_bytes = parameters_of(text_at(row, at));
  limits.source = text_at(row, at + 1);
  return limits;
}

Description description_at(const SQLite::Statement& row, int at) {
  return {text_at(row, at),     text_at(row, at + 1), text_at(row, at + 2),
          text_at(row, at + 3), text_at(row, at + 4), text_at(row, at + 5)};
}

void bind_entry(SQLite::Statement& entry, const std::string& key, const IndexedObject& object) {
  const Description& description = object.head.description;
  entry.bind(1, key);
  entry.bind(2, description.source_hash);
  entry.bind(3, description.target);
  entry.bind(4, description.family);
  entry.bind(5, description.shape_json);
  entry.bind(6, description.compiler);
  entry.bind(7, description.kind);
  bind(entry, 8, object.bytes);
  entry.bind(9, Key{object.payload_digest}.hex());
  entry.bind(10, object.head.provenance.created_unix_ms);
  entry.bind(11, object.used_unix_ms);
  entry.bind(12, std::int64_t{object.head.provenance.compile_ms});
}

Failure failure_at(const SQLite::Statement& row) {
  Failure failure;
  failure.key = key_at(row, 0);
  failure.target = text_at(row, 1);
  failure.compiler = text_at(row, 2);
  failure.error = {static_cast<ErrorCode>(row.getColumn(3).getInt()), text_at(row, 4),
                   text_at(row, 5)};
  failure.created_unix_ms = time_at(row, 6);
  failure.expires_unix_ms = time_at(row, 7);
  return failure;
}

constexpr const char* kFailureColumns =
    "key, target, toolchain, code, message, log, created, expires";

}  // namespace

Result<void> Index::record(std::span<const IndexedObject> objects) {
  return run<void>(Purpose::kWrite, [&](SQLite::Database& database) {
    SQLite::Statement entry(
        database,
        "INSERT INTO entry (key, source_hash, target, family, shape, compiler, kind, bytes, "
        "digest, "
        "created, last_used, compile_ms) VALUES (?,?,?,?,?,?,?,?,?,?,?,?) ON CONFLICT (key) DO "
        "UPDATE SET source_hash = excluded.source_hash, target = excluded.target, "
        "family = excluded.family, shape = excluded.shape, compiler = excluded.compiler, "
        "kind = excluded.kind, bytes = excluded.bytes, digest = excluded.digest, "
        "created = excluded.created, last_used = max(last_used, excluded.last_used), "
        "compile_ms = excluded.compile_ms");
    SQLite::Statement clear(database, "DELETE FROM launch_limit WHERE key = ?");
    SQLite::Statement row(
        database, fmt::format("INSERT OR REPLACE INTO launch_limit (key, function{}) VALUES ({})",
                              limit_columns(), placeholders(kLimitFields.size() + 4)));
    for (const IndexedObject& object : objects) {
      const std::string key = object.head.key.key.hex();
      bind_entry(entry, key, object);
      entry.exec();
      entry.reset();
      clear.bind(1, key);
      clear.exec();
      clear.reset();
      for (const LaunchLimits& limits : object.head.limits) {
        row.bind(1, key);
        row.bind(2, limits.function);
        bind_limits(row, 3, limits);
        row.exec();
        row.reset();
      }
    }
  });
}

Result<void> Index::forget(const std::vector<Key>& keys) {
  return run<void>(Purpose::kWrite, [&](SQLite::Database& database) {
    for (const char* table : {"entry", "launch_limit", "device_limit", "receipt"}) {
      SQLite::Statement remove(database, fmt::format("DELETE FROM {} WHERE key = ?", table));
      for (const Key& key : keys) {
        remove.bind(1, key.hex());
        remove.exec();
        remove.reset();
      }
    }
  });
}

Result<void> Index::add_uses(const std::map<Key, Use>& uses) {
  return run<void>(Purpose::kWrite, [&](SQLite::Database& database) {
    SQLite::Statement update(
        database, "UPDATE entry SET hits = hits + ?, last_used = max(last_used, ?) WHERE key = ?");
    for (const auto& [key, use] : uses) {
      bind(update, 1, use.hits);
      update.bind(2, use.last_unix_ms);
      update.bind(3, key.hex());
      update.exec();
      update.reset();
    }
  });
}

Result<std::vector<Entry>> Index::entries() {
  return run<std::vector<Entry>>(Purpose::kRead, [](SQLite::Database& database) {
    SQLite::Statement row(database,
                          "SELECT key, family, target, shape, source_hash, compiler, kind, bytes, "
                          "compile_ms, created, last_used, hits FROM entry ORDER BY key");
    std::vector<Entry> entries;
    while (row.executeStep()) {
      Entry& entry = entries.emplace_back();
      entry.key = key_at(row, 0);
      entry.description = description_at(row, 1);
      entry.bytes = unsigned_at(row, 7);
      entry.compile_ms = row.getColumn(8).getUInt();
      entry.created_unix_ms = time_at(row, 9);
      entry.last_used_unix_ms = time_at(row, 10);
      entry.hits = unsigned_at(row, 11);
    }
    return entries;
  });
}

Result<std::vector<EntryLimits>> Index::limits() {
  return run<std::vector<EntryLimits>>(Purpose::kRead, [](SQLite::Database& database) {
    SQLite::Statement row(
        database, fmt::format("SELECT key, family, target, shape, source_hash, compiler, kind, "
                              "function{} FROM launch_limit JOIN entry USING (key) "
                              "ORDER BY key, function",
                              limit_columns()));
    std::vector<EntryLimits> all;
    while (row.executeStep()) {
      all.push_back({key_at(row, 0), description_at(row, 1), limits_at(row, 7, 8)});
    }
    return all;
  });
}

Result<std::optional<Usage>> Index::usage() {
  using Counted = std::optional<Usage>;
  return run<Counted>(Purpose::kRead, [](SQLite::Database& database) {
    SQLite::Statement row(database, "SELECT objects, bytes FROM usage WHERE objects NOT NULL");
    if (!row.executeStep()) return Counted{};
    return Counted{Usage{unsigned_at(row, 0), unsigned_at(row, 1)}};
  });
}

Result<void> Index::count_usage() {
  return run<void>(Purpose::kWrite, [](SQLite::Database& database) {
    database.exec(
        "UPDATE usage SET (objects, bytes) = (SELECT count(*), coalesce(sum(bytes), 0) FROM entry) "
        "WHERE objects IS NULL");
  });
}

Result<void> Index::remember(const Failure& failure) {
  return run<void>(Purpose::kWrite, [&](SQLite::Database& database) {
    SQLite::Statement row(database, fmt::format("INSERT OR REPLACE INTO failure ({}) VALUES ({})",
                                                kFailureColumns, placeholders(8)));
    row.bind(1, failure.key.hex());
    row.bind(2, failure.target);
    row.bind(3, failure.compiler);
    row.bind(4, static_cast<std::int32_t>(failure.error.code));
    row.bind(5, failure.error.message);
    row.bind(6, failure.error.detail.substr(0, kMaxLogBytes));
    row.bind(7, failure.created_unix_ms);
    row.bind(8, failure.expires_unix_ms);
    row.exec();
    SQLite::Statement expired(
        database,
        "DELETE FROM failure WHERE expires <= ?1 OR key IN (SELECT key FROM failure ORDER BY "
        "created DESC LIMIT -1 OFFSET ?2)");
    expired.bind(1, failure.created_unix_ms);
    expired.bind(2, kMaxFailureRows);
    expired.exec();
  });
}

Result<void> Index::forget_failure(const Key& key) {
  return run<void>(Purpose::kWrite, [&](SQLite::Database& database) {
    SQLite::Statement row(database, "DELETE FROM failure WHERE key = ?");
    row.bind(1, key.hex());
    row.exec();
  });
}

Result<std::vector<Failure>> Index::failures(std::int64_t now_ms) {
  return run<std::vector<Failure>>(Purpose::kRead, [&](SQLite::Database& database) {
    SQLite::Statement row(database,
                          fmt::format("SELECT {} FROM failure WHERE created <= ? AND expires > ? "
                                      "ORDER BY created DESC",
                                      kFailureColumns));
    row.bind(1, now_ms);
    row.bind(2, now_ms);
    std::vector<Failure> failures;
    while (row.executeStep()) failures.push_back(failure_at(row));
    return failures;
  });
}

Result<void> Index::record(const DeviceLimits& limits) {
  return run<void>(Purpose::kWrite, [&](SQLite::Database& database) {
    SQLite::Statement row(
        database,
        fmt::format("INSERT OR REPLACE INTO device_limit (key, device, driver, function{}) "
                    "VALUES ({})",
                    limit_columns(), placeholders(kLimitFields.size() + 6)));
    row.bind(1, limits.key.hex());
    row.bind(2, limits.device);
    row.bind(3, limits.driver);
    row.bind(4, limits.limits.function);
    bind_limits(row, 5, limits.limits);
    row.exec();
  });
}

Result<std::vector<DeviceLimits>> Index::device_limits(const Key& key) {
  return run<std::vector<DeviceLimits>>(Purpose::kRead, [&](SQLite::Database& database) {
    SQLite::Statement row(database,
                          fmt::format("SELECT key, device, driver, function{} FROM device_limit "
                                      "WHERE key = ? ORDER BY device, driver, function",
                                      limit_columns()));
    row.bind(1, key.hex());
    std::vector<DeviceLimits> all;
    while (row.executeStep()) {
      all.push_back({key_at(row, 0), text_at(row, 1), text_at(row, 2), limits_at(row, 3, 4)});
    }
    return all;
  });
}

Result<void> Index::record(const Receipt& receipt) {
  return run<void>(Purpose::kWrite, [&](SQLite::Database& database) {
    SQLite::Statement row(database,
                          "INSERT OR REPLACE INTO receipt (key, device, driver, gates, "
                          "broach_version, created) VALUES (?,?,?,?,?,?)");
    row.bind(1, receipt.key.hex());
    row.bind(2, receipt.device);
    row.bind(3, receipt.driver);
    row.bind(4, receipt.gates_json);
    row.bind(5, receipt.broach_version);
    row.bind(6, receipt.created_unix_ms);
    row.exec();
  });
}

Result<std::vector<Receipt>> Index::receipts(const Key& key) {
  return run<std::vector<Receipt>>(Purpose::kRead, [&](SQLite::Database& database) {
    SQLite::Statement row(database,
                          "SELECT key, device, driver, gates, broach_version, created FROM receipt "
                          "WHERE key = ? ORDER BY created DESC");
    row.bind(1, key.hex());
    std::vector<Receipt> all;
    while (row.executeStep()) {
      all.push_back({key_at(row, 0), text_at(row, 1), text_at(row, 2), text_at(row, 3),
                     text_at(row, 4), time_at(row, 5)});
    }
    return all;
  });
}

Result<void> Index::record(const JournalRow& row) {
  return run<void>(Purpose::kWrite, [&](SQLite::Database& database) {
    SQLite::Statement add(database,
                          "INSERT INTO journal (family, shape, target, count, last) VALUES "
                          "(?,?,?,?,?) ON CONFLICT DO UPDATE SET count = count + excluded.count, "
                          "last = max(last, excluded.last)");
    add.bind(1, row.family);
    add.bind(2, row.shape_json);
    add.bind(3, row.target);
    bind(add, 4, std::max<std::uint64_t>(row.count, 1));
    add.bind(5, row.last_unix_ms);
    add.exec();
    SQLite::Statement trim(database,
                           "DELETE FROM journal WHERE rowid IN (SELECT rowid FROM journal "
                           "ORDER BY last DESC LIMIT -1 OFFSET ?)");
    trim.bind(1, kMaxJournalRows);
    trim.exec();
  });
}

Result<std::vector<JournalRow>> Index::journal() {
  return run<std::vector<JournalRow>>(Purpose::kRead, [](SQLite::Database& database) {
    SQLite::Statement row(database,
                          "SELECT family, shape, target, count, last FROM journal "
                          "ORDER BY count DESC, family, shape, target");
    std::vector<JournalRow> rows;
    while (row.executeStep()) {
      rows.push_back({text_at(row, 0), text_at(row, 1), text_at(row, 2), unsigned_at(row, 3),
                      time_at(row, 4)});
    }
    return rows;
  });
}

Result<void> Index::forget_miss(const JournalRow& row) {
  return run<void>(Purpose::kWrite, [&](SQLite::Database& database) {
    SQLite::Statement remove(database,
                             "DELETE FROM journal WHERE family = ? AND shape = ? AND target = ?");
    remove.bind(1, row.family);
    remove.bind(2, row.shape_json);
    remove.bind(3, row.target);
    remove.exec();
  });
}

Result<void> Index::clear_journal() {
  return run<void>(Purpose::kWrite,
                   [](SQLite::Database& database) { database.exec("DELETE FROM journal"); });
}

}  // namespace broach::cache
