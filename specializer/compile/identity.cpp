#include "specializer/compile/identity.hpp"

#include <nlohmann/json.hpp>

#include "specializer/compile/elf_build_id.hpp"

namespace broach::specializer {
namespace {

using nlohmann::json;

// The layout of a remembered value; another layout takes another name.
constexpr std::string_view kMemoPrefix = "compiler/1/";

std::string memo_name(CompilerKind kind, const std::string& build_id) {
  return std::string(kMemoPrefix) + std::string(name_of(kind)) + "/" + build_id;
}

}  // namespace

CompilerIdentity identity_of(CompilerKind kind, const rtc::Opened& opened) {
  return {kind, opened.key_text, opened.words, opened.images.front().path};
}

std::optional<CompilerIdentity> IdentityMemo::find(CompilerKind kind,
                                                   const std::filesystem::path& file) const {
  if (!memo_.find) return std::nullopt;
  const auto own_id = rtc::build_id_of(file);
  if (!own_id || own_id->empty()) return std::nullopt;
  const auto text = memo_.find(memo_name(kind, *own_id));
  if (!text) return std::nullopt;
  try {
    const json value = json::parse(*text);
    for (const json& image : value.at("stands_on")) {
      const auto id = rtc::build_id_of(image.at("path").get<std::string>());
      if (!id || *id != image.at("build_id").get<std::string>()) return std::nullopt;
    }
    CompilerIdentity identity{kind, value.at("key_text").get<std::string>(),
                              value.at("words").get<std::string>(), file.string()};
    if (identity.key_text.empty()) return std::nullopt;
    return identity;
  } catch (const json::exception&) {
    return std::nullopt;  // A damaged memo is no memo: the compiler is asked.
  }
}

void IdentityMemo::remember(CompilerKind kind, const std::filesystem::path& file,
                            const rtc::Opened& opened) const {
  if (!memo_.remember) return;
  const auto own_id = rtc::build_id_of(file);
  if (!own_id || own_id->empty() || opened.images.front().build_id != *own_id) return;
  json stands_on = json::array();
  for (std::size_t i = 1; i < opened.images.size(); ++i) {
    const rtc::Image& image = opened.images[i];
    if (image.build_id.empty()) return;
    stands_on.push_back({{"path", image.path}, {"build_id", image.build_id}});
  }
  try {
    const json value = {
        {"key_text", opened.key_text}, {"words", opened.words}, {"stands_on", stands_on}};
    memo_.remember(memo_name(kind, *own_id), value.dump());
  } catch (const json::exception&) {
    // A path or version that is not UTF-8: the compiler is asked every time.
  }
}

}  // namespace broach::specializer
