#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace broach::contract {

/// 32 hex digits over a case's outputs, padding left out.
std::string digest_of(std::span<const std::byte> outputs);

/// The digests that a family pins: "<32 hex digits>  <case name>" a line.
///
/// Owns:    nothing; the text outlives it.
class PinnedDigests {
 public:
  explicit PinnedDigests(std::string_view text);

  /// A case's digest, or an empty one for a case without.
  std::string_view of(std::string_view case_name) const noexcept;

  /// The cases that have one, in the file's order.
  std::vector<std::string_view> names() const;

 private:
  struct Line {
    std::string_view digest;
    std::string_view name;
  };
  std::vector<Line> lines_;
};

}  // namespace broach::contract
