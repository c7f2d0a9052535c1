#include "tools/broach/stored_object.hpp"

#include <fmt/core.h>

#include <utility>

#include "tools/broach/records.hpp"

namespace broach::tool {

Result<cache::Object> stored_object(cache::Cache& cache, const std::string& digits) {
  auto key = find_key(cache, digits);
  if (!key) return key.error();
  auto object = cache.read(*key);
  if (!object) return object.error();
  if (object->has_value()) return **std::move(object);
  return Error{ErrorCode::kNotFound,
               fmt::format("entry {} was removed or set aside just now", key->hex()), ""};
}

}  // namespace broach::tool
