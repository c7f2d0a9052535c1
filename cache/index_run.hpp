#pragma once

#include <SQLiteCpp/SQLiteCpp.h>

#include <exception>
#include <new>

#include "cache/index.hpp"
#include "cache/transaction.hpp"

namespace broach::cache {

/// Does one piece of work on the index: connects, catches what SQLite throws, and tries once more
/// after a malformed file was set aside.
template <class T>
Result<T> Index::run(Purpose purpose, const std::function<T(SQLite::Database&)>& work) {
  const std::lock_guard lock(mutex_);
  Error error{ErrorCode::kIo, "the index is busy", ""};
  if (std::chrono::steady_clock::now() < busy_until_) {
    reporter_.count("index_skipped");
    return error;
  }
  for (int attempt = 0; attempt < 2; ++attempt) {
    work_until_ = std::chrono::steady_clock::now() + work_limit_;
    try {
      const auto database = connect(purpose);
      if (!database) return database.error();
      if constexpr (std::is_void_v<T>) {
        Transaction transaction(**database, Transaction::Begin::kImmediate);
        work(**database);
        transaction.commit();
        return {};
      } else {
        return work(**database);
      }
    } catch (const SQLite::Exception& thrown) {
      error.message = thrown.what();
      if (!recover(thrown)) break;
    } catch (const std::exception& thrown) {
      error.message = thrown.what();
      break;
    }
  }
  return error;
}

}  // namespace broach::cache
