#include "specializer/compile/identity.hpp"

#include <utility>

#include "specializer/compile/elf_build_id.hpp"
#include "specializer/compile/identity_record.hpp"

namespace broach::specializer {
namespace {

// The layout of a remembered value; another layout takes another name.
constexpr std::string_view kMemoPrefix = "compiler/2/";

std::string memo_name(CompilerKind kind, const std::string& build_id) {
  return std::string(kMemoPrefix) + std::string(name_of(kind)) + "/" + build_id;
}

}  // namespace

CompilerIdentity identity_of(CompilerKind kind, const rtc::Opened& opened) {
  return {kind, opened.key_text, opened.words, opened.images.front().path, opened.toolkit};
}

std::optional<CompilerIdentity> IdentityMemo::find(CompilerKind kind,
                                                   const std::filesystem::path& file) const {
  if (!memo_.find) return std::nullopt;
  const auto own_id = rtc::build_id_of(file);
  if (!own_id || own_id->empty()) return std::nullopt;
  const auto text = memo_.find(memo_name(kind, *own_id));
  if (!text) return std::nullopt;
  auto record = parse_identity_record(*text);
  if (!record) return std::nullopt;
  for (const rtc::Image& image : record->stands_on) {
    const auto id = rtc::build_id_of(image.path);
    if (!id || *id != image.build_id) return std::nullopt;
  }
  return CompilerIdentity{kind, std::move(record->key_text), std::move(record->words),
                          file.string(), record->toolkit};
}

void IdentityMemo::remember(CompilerKind kind, const std::filesystem::path& file,
                            const rtc::Opened& opened) const {
  if (!memo_.remember) return;
  const auto own_id = rtc::build_id_of(file);
  if (!own_id || own_id->empty() || opened.images.front().build_id != *own_id) return;
  IdentityRecord record{opened.key_text, opened.words, {}, opened.toolkit};
  for (std::size_t i = 1; i < opened.images.size(); ++i) {
    if (opened.images[i].build_id.empty()) return;
    record.stands_on.push_back(opened.images[i]);
  }
  // A path or version that cannot be written down: the compiler is asked every time.
  if (const auto text = to_text(record)) memo_.remember(memo_name(kind, *own_id), *text);
}

}  // namespace broach::specializer
