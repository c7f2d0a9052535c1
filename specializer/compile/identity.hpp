#pragma once

#include <filesystem>
#include <optional>

#include "specializer/compile/protocol.hpp"
#include "specializer/compilers.hpp"

namespace broach::specializer {

/// The identity that a worker reported.
CompilerIdentity identity_of(CompilerKind kind, const rtc::Opened& opened);

/// Remembers identities between processes, so that a warm look-up starts no worker.
///
/// An identity is kept under the GNU build id of the compiler's own file, together with the build
/// id of every further file that the compiler was found to stand on (NVRTC's builtins, comgr,
/// cc1plus). It is believed only while all of them still read the same: contents, no path or
/// time, decide. A compiler that has a file without a build id is asked every time.
///
/// Threads: those of the memo.
class IdentityMemo {
 public:
  explicit IdentityMemo(Memo memo) : memo_(std::move(memo)) {}

  std::optional<CompilerIdentity> find(CompilerKind kind, const std::filesystem::path& file) const;
  void remember(CompilerKind kind, const std::filesystem::path& file,
                const rtc::Opened& opened) const;

 private:
  Memo memo_;
};

}  // namespace broach::specializer
