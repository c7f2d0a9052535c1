#include "specializer/compile/identity_record.hpp"

#include <fmt/core.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "specializer/bounded_json.hpp"
#include "specializer/json_text.hpp"

namespace broach::specializer {
namespace {

using nlohmann::json;

/// Reads a record event by event: a json value of it could not be destroyed without memory.
///
/// `false` from an event ends the reading: the text is none of ours.
class RecordReader final : public nlohmann::json_sax<json> {
 public:
  bool key(string_t& name) override {
    if (depth_ == 1) section_ = name;
    name_ = std::move(name);
    return true;
  }
  bool string(string_t& value) override {
    if (depth_ == 1 && section_ == "key_text") return take(record_.key_text, value);
    if (depth_ == 1 && section_ == "words") return has_words_ = take(record_.words, value);
    if (in_image() && name_ == "path") return has_path_ = take(image_.path, value);
    if (in_image() && name_ == "build_id") return has_build_id_ = take(image_.build_id, value);
    return other();
  }
  bool number_unsigned(number_unsigned_t value) override {
    if (!in_list("toolkit")) return other();
    const auto number = static_cast<std::uint32_t>(value);
    if (numbers_ == 0) record_.toolkit.major = number;
    if (numbers_ == 1) record_.toolkit.minor = number;
    ++numbers_;
    return true;
  }
  bool start_object(std::size_t) override {
    if (in_list("toolkit")) return false;
    if (in_list("stands_on")) {
      image_ = {};
      has_path_ = has_build_id_ = false;
    }
    return ++depth_ <= kMaxJsonDepth;
  }
  bool end_object() override {
    const bool is_image = in_image();
    --depth_;
    if (!is_image) return true;
    record_.stands_on.push_back(std::move(image_));
    return has_path_ && has_build_id_;
  }
  bool start_array(std::size_t) override {
    if (in_list("toolkit") || in_list("stands_on")) return false;
    const bool is_ours = depth_ == 1;
    if (is_ours && section_ == "stands_on") {
      record_.stands_on.clear();
      has_stands_on_ = true;
    }
    if (is_ours && section_ == "toolkit") numbers_ = 0;
    is_list_ = is_list_ || is_ours;
    return ++depth_ <= kMaxJsonDepth;
  }
  bool end_array() override {
    if (--depth_ == 1) is_list_ = false;
    return true;
  }
  bool null() override { return other(); }
  bool boolean(bool) override { return other(); }
  bool number_integer(number_integer_t) override { return other(); }
  bool number_float(number_float_t, const string_t&) override { return other(); }
  bool binary(binary_t&) override { return other(); }
  bool parse_error(std::size_t, const std::string&, const json::exception&) override {
    return false;
  }

  std::optional<IdentityRecord> record() && {
    const bool whole = !record_.key_text.empty() && has_words_ && has_stands_on_ && numbers_ >= 2;
    if (!whole) return std::nullopt;
    return std::move(record_);
  }

 private:
  static bool take(std::string& to, std::string& value) {
    to = std::move(value);
    return true;
  }
  bool in_list(std::string_view name) const { return depth_ == 2 && is_list_ && section_ == name; }
  bool in_image() const { return depth_ == 3 && is_list_ && section_ == "stands_on"; }
  /// A value of no type that its place may have; what is unknown is read over.
  bool other() const {
    const bool is_text = depth_ == 1 && (section_ == "key_text" || section_ == "words");
    const bool is_in_image = in_image() && (name_ == "path" || name_ == "build_id");
    const bool is_number = in_list("toolkit") && numbers_ < 2;
    return !is_text && !is_in_image && !is_number && !in_list("stands_on");
  }

  IdentityRecord record_;
  rtc::Image image_;
  std::string section_;  ///< The name at the top that a value belongs to.
  std::string name_;     ///< The last one.
  int depth_ = 0;
  int numbers_ = 0;  ///< Of `toolkit`.
  bool is_list_ = false;
  bool has_words_ = false;
  bool has_stands_on_ = false;
  bool has_path_ = false;
  bool has_build_id_ = false;
};

// Throws for what is no UTF-8.
std::string strict(const std::string& value) { return json(value).dump(); }

}  // namespace

std::optional<std::string> to_text(const IdentityRecord& record) try {
  std::string images;
  for (const rtc::Image& image : record.stands_on) {
    if (!images.empty()) images += ',';
    images += JsonObject()
                  .set_json("build_id", strict(image.build_id))
                  .set_json("path", strict(image.path))
                  .text();
  }
  return JsonObject()
      .set_json("key_text", strict(record.key_text))
      .set_json("words", strict(record.words))
      .set_json("stands_on", "[" + images + "]")
      .set_json("toolkit", fmt::format("[{},{}]", record.toolkit.major, record.toolkit.minor))
      .text();
} catch (const json::exception&) {
  return std::nullopt;
}

std::optional<IdentityRecord> parse_identity_record(std::string_view text) {
  RecordReader reader;
  try {
    if (!json::sax_parse(text, &reader)) return std::nullopt;
  } catch (const json::exception&) {
    return std::nullopt;
  }
  return std::move(reader).record();
}

}  // namespace broach::specializer
