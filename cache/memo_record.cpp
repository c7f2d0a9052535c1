#include "cache/memo_record.hpp"

#include "cache/digest.hpp"
#include "cache/key.hpp"
#include "cache/wire.hpp"

namespace broach::cache {

std::string memo_record(std::string_view name, std::string_view value) {
  std::string text;
  append_field(text, "name", name);
  append_field(text, "value", value);
  append_field(text, "digest", Key{digest_of(text)}.hex());
  return text;
}

// What is asked of a memo is that writing it down again gives the same bytes.
std::optional<std::string> value_of_memo(std::string_view record, std::string_view name) {
  const auto fields = fields_of(record);
  if (!fields || fields->size() != 3) return std::nullopt;
  const std::string& value = (*fields)[1].value;
  if (memo_record(name, value) != record) return std::nullopt;
  return value;
}

}  // namespace broach::cache
