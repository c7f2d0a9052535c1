#include "tools/contract/window_rows/gates.hpp"

#include <fmt/core.h>

#include "tools/contract/harness/digests.hpp"

namespace broach::contract::window_rows {

std::string difference(const Problem& a_problem, const std::vector<std::uint16_t>& a,
                       const Problem& b_problem, const std::vector<std::uint16_t>& b,
                       const std::vector<std::int32_t>& where) {
  std::uint64_t count = 0;
  std::string first;
  for (std::size_t i = 0; i < where.size(); ++i) {
    const auto row = static_cast<std::int32_t>(i);
    for (std::int32_t head = 0; head < a_problem.heads(); ++head) {
      const auto a_at = static_cast<std::size_t>(a_problem.out_at(row, head));
      const auto b_at = static_cast<std::size_t>(b_problem.out_at(where[i], head));
      for (std::size_t d = 0; d < a_problem.shape.head_dim; ++d) {
        if (a[a_at + d] == b[b_at + d]) continue;
        if (count++ == 0) {
          first = fmt::format("row {} head {} dim {} has bits {:04x}, not {:04x}", row, head, d,
                              a[a_at + d], b[b_at + d]);
        }
      }
    }
  }
  return count == 0 ? first : fmt::format("{} outputs differ; {}", count, first);
}

std::vector<std::byte> packed(const Problem& problem, const std::vector<std::uint16_t>& out) {
  std::vector<std::byte> bytes;
  bytes.reserve(out.size() * 2);
  for (std::int32_t row = 0; row < problem.rows; ++row) {
    for (std::int32_t head = 0; head < problem.heads(); ++head) {
      const auto at = static_cast<std::size_t>(problem.out_at(row, head));
      for (std::size_t d = 0; d < problem.shape.head_dim; ++d) {
        bytes.push_back(static_cast<std::byte>(out[at + d] & 0xff));
        bytes.push_back(static_cast<std::byte>(out[at + d] >> 8));
      }
    }
  }
  return bytes;
}

std::string digest_of(const Problem& problem, const std::vector<std::uint16_t>& out) {
  return contract::digest_of(packed(problem, out));
}

}  // namespace broach::contract::window_rows
