#pragma once

#include <cstddef>
#include <initializer_list>
#include <limits>

namespace broach::runtime {

/// A product of sizes, or SIZE_MAX where it does not fit: no memory has so many bytes.
constexpr std::size_t saturated_product(std::initializer_list<std::size_t> factors) noexcept {
  std::size_t product = 1;
  for (const std::size_t factor : factors) {
    if (__builtin_mul_overflow(product, factor, &product)) {
      product = std::numeric_limits<std::size_t>::max();
    }
    if (factor == 0) return 0;
  }
  return product;
}

constexpr std::size_t saturated_sum(std::size_t a, std::size_t b) noexcept {
  std::size_t sum = 0;
  return __builtin_add_overflow(a, b, &sum) ? std::numeric_limits<std::size_t>::max() : sum;
}

}  // namespace broach::runtime
