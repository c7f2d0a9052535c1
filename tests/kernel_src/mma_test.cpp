#include "kernel_src/tiles/mma.cuh"

#include <array>
#include <cstdint>
#include <random>
#include <vector>

#include "kernel_src/tiles/copy.cuh"
#include "kernel_src/tiles/fragments.cuh"
#include "tests/support/catch.hpp"

// The layout of the fragments, without the fibers: each lane's loads are made in turn and the
// warp's meeting is called with all 32 of them.
namespace broach {
namespace {

Thread lane_of(BroachHostThread& host, unsigned lane) {
  host.thread = lane;
  return Thread{&host};
}

using Matrix = std::vector<std::uint16_t>;

/// Small whole numbers as bf16: products and sums are exact, so any mix-up of indices shows.
Matrix whole_numbers(std::mt19937& random, std::size_t count) {
  Matrix out(count);
  for (auto& value : out) {
    const float number = static_cast<float>(static_cast<int>(random() % 31) - 15);
    value = narrow<Half::kBf16>(number);
  }
  return out;
}

float at(const Matrix& tile, unsigned stride, unsigned row, unsigned column) {
  return widen<Half::kBf16>(tile[row * stride + column]);
}

struct Warp {
  std::array<std::array<float, 4>, 32> c{};

  template <class LoadA, class LoadB>
  void step(LoadA load_a_words, LoadB load_b_words) {
    std::array<std::array<unsigned, 4>, 32> a{};
    std::array<std::array<unsigned, 2>, 32> b{};
    std::array<MmaLane<Half::kBf16>, 32> lanes{};
    std::array<MmaLane<Half::kBf16>*, 32> pointers{};
    BroachHostThread host{};
    for (unsigned lane = 0; lane < 32; ++lane) {
      unsigned words_a[4];
      unsigned words_b[2];
      load_a_words(lane_of(host, lane), words_a);
      load_b_words(lane_of(host, lane), words_b);
      std::copy(std::begin(words_a), std::end(words_a), a[lane].begin());
      std::copy(std::begin(words_b), std::end(words_b), b[lane].begin());
      lanes[lane] = {c[lane].data(), a[lane].data(), b[lane].data()};
      pointers[lane] = &lanes[lane];
    }
    MmaM16n8k16<Half::kBf16>::apply(pointers.data(), 32);
  }

  float result(unsigned m, unsigned n) const { return c[m % 8 * 4 + n / 2][m / 8 * 2 + n % 2]; }
};

constexpr unsigned kStride = 40;

TEST_CASE("a step multiplies tiles of rows m and of rows n", "[kernel_src][mma]") {
  std::mt19937 random(1);
  const Matrix left = whole_numbers(random, 16 * kStride);
  const Matrix right = whole_numbers(random, 16 * kStride);
  Warp warp;
  for (unsigned k = 0; k < 32; k += 16) {
    warp.step([&](Thread thread, unsigned(&a)[4]) { load_a(thread, a, &left[k], kStride); },
              [&](Thread thread, unsigned(&b)[2]) {
                unsigned both[4];
                load_b_two_steps(thread, both, right.data(), kStride);
                b[0] = both[k / 8];
                b[1] = both[k / 8 + 1];
              });
  }
  for (unsigned m = 0; m < 16; ++m) {
    for (unsigned n = 0; n < 8; ++n) {
      float expected = 0;
      for (unsigned k = 0; k < 32; ++k) {
        expected += at(left, kStride, m, k) * at(right, kStride, n, k);
      }
      REQUIRE(warp.result(m, n) == expected);
    }
  }
}

TEST_CASE("transposed loads take tiles of rows k", "[kernel_src][mma]") {
  std::mt19937 random(2);
  const Matrix left = whole_numbers(random, 16 * kStride);   // [k][m]
  const Matrix right = whole_numbers(random, 16 * kStride);  // [k][n]
  for (unsigned block = 0; block < 2; ++block) {
    Warp warp;
    warp.step(
        [&](Thread thread, unsigned(&a)[4]) { load_a_transposed(thread, a, left.data(), kStride); },
        [&](Thread thread, unsigned(&b)[2]) {
          unsigned both[4];
          load_b_transposed(thread, both, right.data(), kStride);
          b[0] = both[2 * block];
          b[1] = both[2 * block + 1];
        });
    for (unsigned m = 0; m < 16; ++m) {
      for (unsigned n = 0; n < 8; ++n) {
        float expected = 0;
        for (unsigned k = 0; k < 16; ++k) {
          expected += at(left, kStride, k, m) * at(right, kStride, k, block * 8 + n);
        }
        REQUIRE(warp.result(m, n) == expected);
      }
    }
  }
}

TEST_CASE("two column blocks come from one load of rows n", "[kernel_src][mma]") {
  std::mt19937 random(3);
  const Matrix left = whole_numbers(random, 16 * kStride);
  const Matrix right = whole_numbers(random, 16 * kStride);
  for (unsigned block = 0; block < 2; ++block) {
    Warp warp;
    warp.step([&](Thread thread, unsigned(&a)[4]) { load_a(thread, a, left.data(), kStride); },
              [&](Thread thread, unsigned(&b)[2]) {
                unsigned both[4];
                load_b_two_blocks(thread, both, right.data(), kStride);
                b[0] = both[2 * block];
                b[1] = both[2 * block + 1];
              });
    for (unsigned m = 0; m < 16; ++m) {
      for (unsigned n = 0; n < 8; ++n) {
        float expected = 0;
        for (unsigned k = 0; k < 16; ++k) {
          expected += at(left, kStride, m, k) * at(right, kStride, block * 8 + n, k);
        }
        REQUIRE(warp.result(m, n) == expected);
      }
    }
  }
}

TEST_CASE("an absent row is copied as zeros and never read", "[kernel_src][mma]") {
  alignas(16) std::uint16_t shared[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  copy_16_bytes(shared, nullptr, false);
  for (const std::uint16_t value : shared) CHECK(value == 0);
  alignas(16) const std::uint16_t from[8] = {8, 7, 6, 5, 4, 3, 2, 1};
  copy_16_bytes(shared, from, true);
  copy_commit();
  copy_wait<0>();
  CHECK(shared[0] == 8);
  CHECK(shared[7] == 1);
}

}  // namespace
}  // namespace broach
