#pragma once

#include <SQLiteCpp/SQLiteCpp.h>
#include <sqlite3.h>

namespace broach::cache {

/// A transaction of a database: rolled back at its end unless it was committed.
///
/// Unlike SQLite::Transaction it ends without memory, too: it neither allocates nor throws then.
///
/// Errors:  SQLite::Exception from the constructor and commit().
class Transaction {
 public:
  enum class Begin { kDeferred, kImmediate };

  Transaction(SQLite::Database& database, Begin begin) : database_(database) {
    database_.exec(begin == Begin::kImmediate ? "BEGIN IMMEDIATE" : "BEGIN");
  }
  ~Transaction() {
    // Once more, where the first found no memory.
    for (int i = 0; i < 2 && sqlite3_get_autocommit(database_.getHandle()) == 0; ++i) {
      sqlite3_exec(database_.getHandle(), "ROLLBACK", nullptr, nullptr, nullptr);
    }
  }
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;

  void commit() { database_.exec("COMMIT"); }

 private:
  SQLite::Database& database_;
};

}  // namespace broach::cache
