#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "specializer/compile/protocol.hpp"

namespace broach::specializer {

/// A compiler's identity as a memo holds it.
struct IdentityRecord {
  std::string key_text;
  std::string words;
  std::vector<rtc::Image> stands_on;  ///< The files besides the compiler's own.
  Version toolkit;

  friend bool operator==(const IdentityRecord&, const IdentityRecord&) = default;
};

/// Absent where a text is not UTF-8, which JSON cannot hold.
std::optional<std::string> to_text(const IdentityRecord& record);

/// Absent for a text that no memo has; the compiler is then asked.
std::optional<IdentityRecord> parse_identity_record(std::string_view text);

}  // namespace broach::specializer
