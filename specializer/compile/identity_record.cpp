#include "specializer/compile/identity_record.hpp"

#include <nlohmann/json.hpp>

#include "specializer/bounded_json.hpp"

namespace broach::specializer {
namespace {

using nlohmann::json;

std::uint32_t number_in(const json& list, std::size_t at) {
  return static_cast<std::uint32_t>(list.at(at).get_ref<const json::number_unsigned_t&>());
}

}  // namespace

std::optional<std::string> to_text(const IdentityRecord& record) {
  json stands_on = json::array();
  for (const rtc::Image& image : record.stands_on) {
    stands_on.push_back({{"path", image.path}, {"build_id", image.build_id}});
  }
  try {
    const json value = {{"key_text", record.key_text},
                        {"words", record.words},
                        {"stands_on", stands_on},
                        {"toolkit", {record.toolkit.major, record.toolkit.minor}}};
    return value.dump();
  } catch (const json::exception&) {
    return std::nullopt;
  }
}

std::optional<IdentityRecord> parse_identity_record(std::string_view text) {
  const auto value = parse_json<json>(text);
  if (!value) return std::nullopt;
  try {
    IdentityRecord record{
        value->at("key_text").get<std::string>(), value->at("words").get<std::string>(), {}, {}};
    for (const json& image : value->at("stands_on")) {
      record.stands_on.push_back(
          {image.at("path").get<std::string>(), image.at("build_id").get<std::string>()});
    }
    const json& toolkit = value->at("toolkit");
    record.toolkit = {number_in(toolkit, 0), number_in(toolkit, 1)};
    if (record.key_text.empty()) return std::nullopt;
    return record;
  } catch (const json::exception&) {
    return std::nullopt;
  }
}

}  // namespace broach::specializer
