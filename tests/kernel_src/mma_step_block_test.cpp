#include "kernel_src/tiles/mma_step_block.cuh"

#include <cstring>
#include <random>

#include "kernel_src/tiles/mma_step_block_f16.cuh"
#include "tests/kernel_src/mma_step_inputs.hpp"
#include "tests/support/catch.hpp"

namespace broach::tiles {
namespace {

struct Block {
  unsigned short a[16][16];
  unsigned short b[16][8];
  unsigned c[16][8];
};

Block draw(std::mt19937& random, test::Spread spread, int exponent_bits) {
  Block block{};
  for (std::size_t m = 0; m < 16; ++m) {
    const test::StepInputs in = test::draw_inputs(random, spread, exponent_bits);
    for (std::size_t k = 0; k < 16; ++k) {
      block.a[m][k] = in.a[k];
      for (std::size_t n = 0; n < 8; ++n) block.b[k][n] = in.b[(k + n) % 16];
    }
  }
  for (std::size_t m = 0; m < 16; ++m) {
    for (std::size_t n = 0; n < 8; ++n) {
      block.c[m][n] = test::draw_inputs(random, spread, exponent_bits).c;
    }
  }
  return block;
}

/// Outputs of the block form that differ from the one-output model.
template <class In, class Step>
int count_differences(const Block& block) {
  unsigned c[16][8];
  std::memcpy(c, block.c, sizeof(c));
  mma_step_block<In, Step>(block.a, block.b, c);
  int differences = 0;
  for (std::size_t m = 0; m < 16; ++m) {
    for (std::size_t n = 0; n < 8; ++n) {
      differences += c[m][n] != mma_step<In, Step>(block.a[m], 1, &block.b[0][n], 8, block.c[m][n]);
    }
  }
  return differences;
}

/// The same for the form with f16 accumulators, taken from the upper halves of `c`.
int count_f16(const Block& block) {
  unsigned short c[16][8];
  for (std::size_t m = 0; m < 16; ++m) {
    for (std::size_t n = 0; n < 8; ++n) {
      c[m][n] = static_cast<unsigned short>(block.c[m][n] >> 16);
    }
  }
  unsigned short got[16][8];
  std::memcpy(got, c, sizeof(got));
  mma_step_block_f16(block.a, block.b, got);
  int differences = 0;
  for (std::size_t m = 0; m < 16; ++m) {
    for (std::size_t n = 0; n < 8; ++n) {
      differences +=
          got[m][n] != fused_step_f16<F16Format>(block.a[m], 1, &block.b[0][n], 8, c[m][n]);
    }
  }
  return differences;
}

/// Accumulators of f16's range: finite values of every exponent.
Block with_f16_accumulators(std::mt19937& random, Block block) {
  for (auto& row : block.c) {
    for (auto& value : row) {
      const auto bits = static_cast<unsigned>(random()) & 0xFFFF0000U;
      value = (bits & 0x7C000000U) == 0x7C000000U ? bits & 0xBFFF0000U : bits;
    }
  }
  return block;
}

template <class In>
int count_both(const Block& block) {
  return count_differences<In, OneK16>(block) + count_differences<In, TwoK8>(block);
}

TEST_CASE("the block form is the model, output by output", "[kernel_src][mma_step]") {
  std::mt19937 random(3);
  for (const test::Spread spread : test::kSpreads) {
    for (int i = 0; i < 40; ++i) {
      REQUIRE(count_both<Bf16Format>(draw(random, spread, 8)) == 0);
      REQUIRE(count_both<F16Format>(draw(random, spread, 5)) == 0);
    }
  }
}

TEST_CASE("the block form is the model on any bit patterns", "[kernel_src][mma_step]") {
  // Uniform patterns: NaN, infinities, subnormals and overflow beside ordinary rows and columns.
  std::mt19937 random(5);
  for (int i = 0; i < 60; ++i) {
    Block block{};
    for (auto& row : block.a) {
      for (auto& value : row) value = static_cast<unsigned short>(random());
    }
    for (auto& row : block.b) {
      for (auto& value : row) value = static_cast<unsigned short>(random());
    }
    for (auto& row : block.c) {
      for (auto& value : row) value = static_cast<unsigned>(random());
    }
    REQUIRE(count_both<Bf16Format>(block) == 0);
    REQUIRE(count_both<F16Format>(block) == 0);
  }
}

TEST_CASE("the block form with f16 accumulators is the model, output by output",
          "[kernel_src][mma_step]") {
  std::mt19937 random(11);
  for (const test::Spread spread : test::kSpreads) {
    for (int i = 0; i < 60; ++i) {
      Block block = with_f16_accumulators(random, draw(random, spread, 5));
      REQUIRE(count_f16(block) == 0);
      for (auto& row : block.c) {
        for (auto& value : row) value = 0;
      }
      REQUIRE(count_f16(block) == 0);
    }
  }
  for (int i = 0; i < 60; ++i) {  // any bits
    Block block{};
    for (auto& row : block.a) {
      for (auto& value : row) value = static_cast<unsigned short>(random());
    }
    for (auto& row : block.b) {
      for (auto& value : row) value = static_cast<unsigned short>(random());
    }
    for (auto& row : block.c) {
      for (auto& value : row) value = static_cast<unsigned>(random());
    }
    REQUIRE(count_f16(block) == 0);
  }
}

TEST_CASE("an f16 step aligns its terms to 2^-25 of the largest", "[kernel_src][mma_step]") {
  // 448 * 2.25 twice with opposite signs, and 2^-9 * 2^-9, which lies below the grid beside them.
  Block block{};
  const unsigned short p[] = {0x5F00, 0x5F00, 0x1800};
  const unsigned short v[] = {0x4080, 0xC080, 0x1800};
  for (auto& row : block.a) std::memcpy(row, p, sizeof(p));
  for (std::size_t k = 0; k < 3; ++k) {
    for (auto& value : block.b[k]) value = v[k];
  }
  unsigned short c[16][8] = {};
  mma_step_block_f16(block.a, block.b, c);
  CHECK(c[0][0] == 0);  // the exact sum is 2^-18
  for (auto& row : block.a) row[0] = row[1] = 0;
  mma_step_block_f16(block.a, block.b, c);
  CHECK(c[15][7] == 0x0040);  // 2^-18 on its own
}

TEST_CASE("the block form holds the largest sums", "[kernel_src][mma_step]") {
  // Sixteen of the largest products and an accumulator of their exponent: the widest sum there is,
  // of both signs.
  Block block{};
  for (auto& row : block.a) {
    for (auto& value : row) value = 0x3FFF;  // f16: 2047 * 2^-10; bf16: 255 * 2^-7
  }
  for (auto& row : block.b) {
    for (std::size_t n = 0; n < 8; ++n) row[n] = n % 2 == 0 ? 0x3FFF : 0xBFFF;
  }
  for (auto& row : block.c) {
    for (std::size_t n = 0; n < 8; ++n) row[n] = n % 4 < 2 ? 0x3FFFFFFFU : 0xBFFFFFFFU;
  }
  CHECK(count_both<F16Format>(block) == 0);
  CHECK(count_both<Bf16Format>(block) == 0);
  CHECK(count_f16(block) == 0);
}

}  // namespace
}  // namespace broach::tiles
