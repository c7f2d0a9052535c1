#include "cache/failure.hpp"

#include <algorithm>

#include "cache/wire.hpp"

namespace broach::cache {
namespace {

constexpr std::size_t kMaxLogBytes = std::size_t{128} * 1024;

}  // namespace

std::string to_text(const Failure& failure) {
  std::string text;
  append_field(text, "target", failure.target);
  append_field(text, "compiler", failure.compiler);
  append_field(text, "code", std::int64_t{static_cast<std::int32_t>(failure.error.code)});
  append_field(text, "message", failure.error.message);
  append_field(text, "log", std::string_view(failure.error.detail).substr(0, kMaxLogBytes));
  append_field(text, "created", failure.created_unix_ms);
  append_field(text, "expires", failure.expires_unix_ms);
  append_field(text, "limits", failure.limits);
  return text;
}

std::optional<Failure> failure_from(const Key& key, std::string_view text) {
  const auto fields = fields_of(text);
  if (!fields) return std::nullopt;
  const auto value = [&](std::string_view label) -> std::string {
    const auto found = std::find_if(fields->begin(), fields->end(),
                                    [&](const KeyField& field) { return field.label == label; });
    return found == fields->end() ? std::string() : found->value;
  };
  const auto code = parse_number(value("code"));
  const auto created = parse_number(value("created"));
  const auto expires = parse_number(value("expires"));
  if (!code || !created || !expires) return std::nullopt;
  // A time before all times has no distance to now.
  if (*created < 0 || *expires < 0) return std::nullopt;
  Failure failure;
  failure.key = key;
  failure.target = value("target");
  failure.compiler = value("compiler");
  failure.limits = value("limits");
  failure.error = {static_cast<ErrorCode>(*code), value("message"), value("log")};
  failure.created_unix_ms = *created;
  failure.expires_unix_ms = *expires;
  return failure;
}

}  // namespace broach::cache
