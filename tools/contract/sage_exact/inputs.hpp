#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "broach/result.hpp"

namespace broach::contract::sage_exact {

constexpr std::size_t kHeadDim = 128;

/// One interleaved projection of the golden inputs.
///
/// Shapes:  bf16 [tokens][3 * heads * 128]: a row holds q, k and v of every head.
struct InputRule {
  std::size_t tokens = 0;
  std::size_t heads = 0;
  std::uint64_t seed = 0;
  int q_multiplier = 1;  ///< 1 or 8

  std::size_t row_width() const noexcept { return 3 * heads * kHeadDim; }
};

/// A change of some elements of an input: the golden adversarial cases' rule.
///
/// The elements of one part with head, token and dim inside the ranges are visited token by token,
/// then head by head, then dim by dim. `r` is made from the current bits b as the kind says;
/// then, where `sign_of_odd_tokens` is set and the token is odd, its sign changes; then `toggled`
/// is exclusive-ored in.
struct InputChange {
  enum class Kind : std::uint8_t {
    kBits,            ///< (b & kept) | set
    kList,            ///< values[(token * token_factor + dim * dim_factor) mod their count]
    kPick,            ///< values[b mod their count]
    kRamp,            ///< start + (token * token_factor + dim * dim_factor) mod modulus
    kExponent,        ///< the exponent field, raised by k + kd (dim mod md) + kn (token mod mn)
    kRandomExponent,  ///< the exponent field = base + (b & mask)
    kFrom,            ///< the element of token from + factor * token
  };
  struct Range {
    std::size_t begin = 0;
    std::size_t end = 0;
    std::size_t step = 1;
  };

  Kind kind = Kind::kBits;
  std::size_t part = 0;  ///< 0 q, 1 k, 2 v
  Range heads, tokens, dims;
  unsigned kept = 0xffff;
  unsigned set = 0;
  std::vector<std::uint16_t> values;
  std::size_t token_factor = 0;
  std::size_t dim_factor = 0;
  unsigned start = 0;
  std::size_t modulus = 65536;
  int k = 0, kd = 0, kn = 0;
  std::size_t md = 1, mn = 1;
  unsigned base = 0;
  unsigned mask = 0;
  std::int64_t from = 0;
  std::int64_t factor = 0;
  bool sign_of_odd_tokens = false;
  unsigned toggled = 0;
};

/// The SplitMix64 finaliser of one number.
std::uint64_t mixed(std::uint64_t z) noexcept;

/// bf16 bits of element `i` = token * row_width + column.
std::uint16_t input_at(const InputRule& rule, std::size_t token, std::size_t column) noexcept;

/// The whole projection, made by several threads.
std::vector<std::uint16_t> make_input(const InputRule& rule);

/// Applies a change in place.
void apply(const InputChange& change, const InputRule& rule, std::vector<std::uint16_t>& input);

}  // namespace broach::contract::sage_exact
