#include "tools/contract/harness/draws.hpp"

#include <cmath>
#include <cstddef>

#include "tools/contract/harness/number.hpp"

namespace broach::contract {

std::uint64_t mixed(std::uint64_t x) noexcept {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

double uniform(std::uint64_t name) noexcept { return static_cast<double>(name >> 11) * 0x1p-53; }

double bell(std::uint64_t draw) noexcept {
  const std::uint64_t sum =
      (draw & 0xffff) + ((draw >> 16) & 0xffff) + ((draw >> 32) & 0xffff) + (draw >> 48);
  return (static_cast<double>(sum) - 2.0 * 65535.0) * (1.7320508075688772 / 65536.0);
}

void draw_vector(std::span<std::uint16_t> to, std::uint64_t name, double rms, Dtype dtype) {
  double squares = 0;
  std::uint64_t at = name;
  for (std::size_t d = 0; d < to.size(); ++d) {
    const double x = bell(mixed(++at));
    squares += x * x;
  }
  const double factor = rms / std::sqrt(squares / static_cast<double>(to.size()));
  at = name;
  for (std::uint16_t& element : to) element = round_to(bell(mixed(++at)) * factor, dtype);
}

}  // namespace broach::contract
