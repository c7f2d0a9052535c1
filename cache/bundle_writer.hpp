#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <vector>

#include "broach/result.hpp"
#include "cache/key.hpp"
#include "cache/object.hpp"
#include "cache/signature.hpp"

namespace broach::cache {

/// What a bundle came to.
struct WrittenBundle {
  std::uint64_t objects = 0;
  std::uint64_t object_bytes = 0;  ///< Before compression.
  std::uint64_t file_bytes = 0;
};

/// The object without what depends on when and how fast it was compiled: the time of creation, the
/// compile time and the compiler's log. Two machines that compile the same plan with the same
/// compiler then have the same bytes.
Object without_circumstances(Object object);

/// Writes the objects of these keys into one file, which appears whole or not at all, with mode
/// 0644. The same objects and key give the same bytes, in whatever order the keys come.
///
/// Errors:  kInvalidArgument for no keys, or more than a bundle holds; `read`'s; kLimitExceeded
///          for what no bundle may claim; the operating system's.
Result<WrittenBundle> write_bundle(const std::filesystem::path& path, std::vector<Key> keys,
                                   const std::function<Result<Object>(const Key&)>& read,
                                   const SecretKey* signer);

}  // namespace broach::cache
