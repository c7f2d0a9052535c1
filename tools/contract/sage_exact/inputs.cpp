#include "tools/contract/sage_exact/inputs.hpp"

#include <algorithm>
#include <bit>
#include <thread>
#include <tuple>

#include "tools/contract/harness/in_parallel.hpp"

namespace broach::contract::sage_exact {
namespace {

/// To bf16, nearest even; the value is finite.
std::uint16_t to_bf16(float value) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  return static_cast<std::uint16_t>((bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16);
}

/// What a k channel is moved by, in units of 1/64.
int channel_offset(const InputRule& rule, std::size_t channel) noexcept {
  const std::uint64_t z = mixed((std::uint64_t{1} << 63) + (rule.seed << 40) + channel);
  return static_cast<int>(z & 0xffU) - 128;
}

void make_tokens(const InputRule& rule, std::size_t first, std::size_t last, std::uint16_t* out) {
  for (std::size_t token = first; token < last; ++token) {
    for (std::size_t column = 0; column < rule.row_width(); ++column) {
      out[token * rule.row_width() + column] = input_at(rule, token, column);
    }
  }
}

std::uint16_t with_exponent(std::uint16_t bits, unsigned field) noexcept {
  return static_cast<std::uint16_t>((bits & 0x807fU) | (field << 7));
}

std::uint16_t changed(const InputChange& change, std::uint16_t b, std::size_t token,
                      std::size_t dim) {
  const std::size_t at = token * change.token_factor + dim * change.dim_factor;
  switch (change.kind) {
    case InputChange::Kind::kBits:
      return static_cast<std::uint16_t>((b & change.kept) | change.set);
    case InputChange::Kind::kList:
      return change.values[at % change.values.size()];
    case InputChange::Kind::kPick:
      return change.values[b % change.values.size()];
    case InputChange::Kind::kRamp:
      return static_cast<std::uint16_t>(change.start + at % change.modulus);
    case InputChange::Kind::kExponent: {
      const int field = static_cast<int>((b >> 7) & 255U) + change.k +
                        change.kd * static_cast<int>(dim % change.md) +
                        change.kn * static_cast<int>(token % change.mn);
      return with_exponent(b, static_cast<unsigned>(std::clamp(field, 0, 254)));
    }
    case InputChange::Kind::kRandomExponent:
      return with_exponent(b, change.base + (b & change.mask));
    case InputChange::Kind::kFrom:
      break;
  }
  return b;
}

}  // namespace

std::uint64_t mixed(std::uint64_t z) noexcept {
  z += 0x9e3779b97f4a7c15U;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
  return z ^ (z >> 31);
}

std::uint16_t input_at(const InputRule& rule, std::size_t token, std::size_t column) noexcept {
  const std::uint64_t z = mixed((rule.seed << 40) + token * rule.row_width() + column);
  const int sum =
      static_cast<int>((z & 0xffffU) + ((z >> 16) & 0xffffU) + ((z >> 32) & 0xffffU) + (z >> 48)) -
      131070;
  auto x = static_cast<float>(sum) * 0x1p-15F;
  const std::size_t part_width = rule.heads * kHeadDim;
  if (column < part_width) {
    x *= static_cast<float>(rule.q_multiplier);
  } else if (column < 2 * part_width) {
    x += static_cast<float>(channel_offset(rule, column - part_width)) * 0x1p-6F;
  }
  return to_bf16(x);
}

std::vector<std::uint16_t> make_input(const InputRule& rule) {
  std::vector<std::uint16_t> input(rule.tokens * rule.row_width());
  // A thread for each 2^22 elements, as far as there are processors.
  const std::size_t most = std::max(1U, std::thread::hardware_concurrency());
  const std::size_t count = std::clamp<std::size_t>(input.size() >> 22, 1, most);
  in_parallel(count, static_cast<std::uint32_t>(count), [&](std::size_t i) {
    make_tokens(rule, rule.tokens * i / count, rule.tokens * (i + 1) / count, input.data());
  });
  return input;
}

void apply(const InputChange& change, const InputRule& rule, std::vector<std::uint16_t>& input) {
  const auto at = [&](std::size_t token, std::size_t head, std::size_t dim) -> std::uint16_t& {
    return input[token * rule.row_width() + (change.part * rule.heads + head) * kHeadDim + dim];
  };
  const auto& [heads, tokens, dims] = std::tie(change.heads, change.tokens, change.dims);
  for (std::size_t token = tokens.begin; token < tokens.end; token += tokens.step) {
    for (std::size_t head = heads.begin; head < heads.end; head += heads.step) {
      for (std::size_t dim = dims.begin; dim < dims.end; dim += dims.step) {
        std::uint16_t& element = at(token, head, dim);
        unsigned r = change.kind == InputChange::Kind::kFrom
                         ? at(static_cast<std::size_t>(
                                  change.from + change.factor * static_cast<std::int64_t>(token)),
                              head, dim)
                         : changed(change, element, token, dim);
        if (change.sign_of_odd_tokens && token % 2 == 1) r ^= 0x8000U;
        element = static_cast<std::uint16_t>(r ^ change.toggled);
      }
    }
  }
}

}  // namespace broach::contract::sage_exact
