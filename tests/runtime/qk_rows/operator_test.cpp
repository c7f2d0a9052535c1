#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "broach/qk_rows.hpp"
#include "broach/window_rows.hpp"
#include "common/half.cuh"
#include "tests/runtime/fixture.hpp"
#include "tests/support/catch.hpp"

namespace broach {
namespace {

constexpr std::size_t kDims = 64;
constexpr std::size_t kKvHeads = 2;
constexpr std::size_t kHeads = 4;
constexpr std::size_t kRows = 70;

double value(std::uint16_t bits) { return double{widen<Half::kBf16>(bits)}; }
double rounded(double x) { return value(narrow<Half::kBf16>(x)); }

/// A chunk of one stream from position 0 on, prepared and attended to.
struct Chunk {
  std::vector<std::uint16_t> q, k, v, q_out, out, cache_k, cache_v;
  std::vector<float> inverse, scale;
  std::vector<std::int32_t> positions, slots;
  QkRowsShape shape;
  QkRowsArgs args;

  Chunk() {
    shape.head_dim = kDims;
    shape.gqa_ratio = kHeads / kKvHeads;
    shape.rope_dim = kDims;
    shape.norm = HeadNorm::kL2;
    shape.q_scale = Switch::kOn;
    std::mt19937 random(5);
    std::normal_distribution<float> normal;
    const auto fill = [&](std::vector<std::uint16_t>& values, std::size_t heads) {
      values.resize(kRows * heads * kDims);
      for (auto& one : values) one = narrow<Half::kBf16>(normal(random));
    };
    fill(q, kHeads);
    fill(k, kKvHeads);
    fill(v, kKvHeads);
    q_out.resize(q.size());
    out.resize(q.size());
    cache_k.assign(k.size(), 0x7fff);
    cache_v = cache_k;
    for (std::size_t j = 0; j < kDims / 2; ++j) {
      inverse.push_back(
          static_cast<float>(std::pow(10000.0, -2.0 * static_cast<double>(j) / kDims)));
    }
    for (std::size_t i = 0; i < kDims; ++i) scale.push_back(4.0F + normal(random));
    for (std::size_t row = 0; row < kRows; ++row) {
      positions.push_back(static_cast<std::int32_t>(row));
      slots.push_back(0);
    }
    args.q = q.data();
    args.k = k.data();
    args.v = v.data();
    args.q_out = q_out.data();
    args.inverse_frequencies = inverse.data();
    args.q_scale = scale.data();
    args.positions = positions.data();
    args.slots = slots.data();
    args.q_row_stride = args.q_out_row_stride = kHeads * kDims;
    args.k_row_stride = args.v_row_stride = kKvHeads * kDims;
    args.q_head_stride = args.q_out_head_stride = args.k_head_stride = args.v_head_stride = kDims;
    args.rows = kRows;
    broach_kv_cache& cache = args.cache;
    cache.k = cache_k.data();
    cache.v = cache_v.data();
    cache.k_head_stride = cache.v_head_stride = kDims;
    cache.k_position_stride = cache.v_position_stride = kKvHeads * kDims;
    cache.k_slot_stride = cache.v_slot_stride = kRows * kKvHeads * kDims;
    cache.kv_heads = kKvHeads;
    cache.slots = 1;
    cache.length = kRows;
  }
  Chunk(const Chunk&) = delete;
  Chunk& operator=(const Chunk&) = delete;

  /// A prepared head in float64 at the rounding points.
  std::vector<double> head(const std::uint16_t* from, std::size_t row, bool is_query) const {
    std::vector<double> x;
    for (std::size_t i = 0; i < kDims; ++i) x.push_back(value(from[i]));
    for (std::size_t j = 0; j < kDims / 2; ++j) {
      const double angle = double{static_cast<float>(row) * inverse[j]};
      const double a = x[j];
      const double b = x[j + kDims / 2];
      x[j] = rounded(a * std::cos(angle) - b * std::sin(angle));
      x[j + kDims / 2] = rounded(a * std::sin(angle) + b * std::cos(angle));
    }
    double sum = 0;
    for (const double one : x) sum += one * one;
    for (std::size_t i = 0; i < kDims; ++i) {
      x[i] = rounded(x[i] / std::sqrt(sum + 1e-6));
      if (is_query) x[i] = rounded(double{scale[i]} * x[i]);
    }
    return x;
  }

  /// The attention of one row and query head over the rows up to it, in float64.
  std::vector<double> attended(std::size_t row, std::size_t h) const {
    const std::size_t kv = h / (kHeads / kKvHeads);
    const auto query = head(&q[(row * kHeads + h) * kDims], row, true);
    std::vector<double> o(kDims, 0.0);
    double l = 0;
    for (std::size_t key = 0; key <= row; ++key) {
      const auto of = head(&k[(key * kKvHeads + kv) * kDims], key, false);
      double s = 0;
      for (std::size_t i = 0; i < kDims; ++i) s += query[i] * of[i];
      const double p = std::exp(s);
      l += p;
      for (std::size_t i = 0; i < kDims; ++i) {
        o[i] += p * value(v[(key * kKvHeads + kv) * kDims + i]);
      }
    }
    for (double& one : o) one /= l;
    return o;
  }

  /// How far a row of `out` is from float64 through both operators.
  double worst(std::size_t row) const {
    double most = 0;
    for (std::size_t h = 0; h < kHeads; ++h) {
      const auto want = attended(row, h);
      for (std::size_t i = 0; i < kDims; ++i) {
        most = std::max(most, std::abs(want[i] - value(out[(row * kHeads + h) * kDims + i])));
      }
    }
    return most;
  }
};

// A 16-bit unit of q or k that rounds the other way moves a score by 2^-9 of its terms.
constexpr double kTolerance = 0.03;

broach_attention_rows attention_of(const Chunk& c, std::size_t first, std::size_t rows,
                                   std::vector<std::uint16_t>& out) {
  broach_attention_rows attention{};
  attention.q = c.q_out.data() + first * kHeads * kDims;
  attention.out = out.data() + first * kHeads * kDims;
  attention.q_row_stride = attention.out_row_stride = kHeads * kDims;
  attention.q_head_stride = attention.out_head_stride = kDims;
  attention.rows = static_cast<std::int32_t>(rows);
  attention.scale = 1.0F;
  return attention;
}

}  // namespace

TEST_CASE("what qk_rows prepares, window_rows attends to, in a prefill and in a decode",
          "[runtime][qk_rows]") {
  const test::TempDir dir;
  auto runtime = Runtime::create(test::options_in(dir));
  REQUIRE(runtime);
  Chunk c;
  auto prepare = qk_rows_operator(*runtime, c.shape);
  REQUIRE(prepare);
  const auto prepared = prepare->launch(c.args, nullptr);
  INFO((prepared ? std::string() : prepared.error().message));
  REQUIRE(prepared);

  WindowRowsShape shape;
  shape.head_dim = kDims;
  shape.gqa_ratio = kHeads / kKvHeads;
  auto prefill = window_rows_prefill(*runtime, shape);
  REQUIRE(prefill);
  WindowRowsPrefillArgs chunk;
  chunk.attention = attention_of(c, 0, kRows, c.out);
  chunk.cache = c.args.cache;
  const std::vector<std::int32_t> start{0}, slot{0}, offsets{0, kRows};
  chunk.positions = start.data();
  chunk.slots = slot.data();
  chunk.offsets = offsets.data();
  chunk.sequences = 1;
  REQUIRE(prefill->launch(chunk, nullptr));
  for (const std::size_t row : {std::size_t{0}, std::size_t{1}, std::size_t{63}, kRows - 1}) {
    CHECK(c.worst(row) < kTolerance);
  }

  auto decode = window_rows_decode(*runtime, shape);
  REQUIRE(decode);
  std::vector<std::uint16_t> decoded(c.out.size());
  WindowRowsDecodeArgs step;
  step.attention = attention_of(c, kRows - 1, 1, decoded);
  step.cache = c.args.cache;
  step.positions = &c.positions[kRows - 1];
  step.slots = slot.data();
  std::vector<double> workspace(decode->workspace_bytes(1, kKvHeads, kRows) / 8 + 2);
  step.workspace = workspace.data();
  step.workspace_bytes = workspace.size() * 8;
  REQUIRE(decode->launch(step, nullptr));
  const auto last = static_cast<std::ptrdiff_t>((kRows - 1) * kHeads * kDims);
  CHECK(std::equal(c.out.begin() + last, c.out.end(), decoded.begin() + last));
  // The reference sees a rotation that goes the other way.
  for (float& one : c.inverse) one = -one;
  CHECK(c.worst(kRows - 1) > kTolerance);
}

TEST_CASE("a qk_rows launch names the argument that is wrong", "[runtime][qk_rows]") {
  const test::TempDir dir;
  auto runtime = Runtime::create(test::options_in(dir));
  REQUIRE(runtime);
  Chunk c;
  auto op = qk_rows_operator(*runtime, c.shape);
  REQUIRE(op);
  const auto message = [&](const auto& spoil) {
    QkRowsArgs args = c.args;
    spoil(args);
    const auto launched = op->launch(args, nullptr);
    return launched ? std::string("launched") : launched.error().message;
  };
  const auto has = [](const std::string& text, const char* part) {
    INFO(text);
    CHECK(text.find(part) != std::string::npos);
  };
  has(message([](QkRowsArgs& a) { a.k = nullptr; }), "k is null");
  has(message([](QkRowsArgs& a) { a.v_row_stride = 3; }), "v_row_stride is 3");
  has(message([](QkRowsArgs& a) { a.inverse_frequencies = nullptr; }),
      "inverse_frequencies is null");
  has(message([&](QkRowsArgs& a) { a.q_norm = c.scale.data(); }), "no norm=rms");
  has(message([](QkRowsArgs& a) { a.epsilon = -1.0F; }), "epsilon is -1");
  has(message([](QkRowsArgs& a) { a.positions = nullptr; }), "positions is null");
  has(message([](QkRowsArgs& a) { a.cache.kv_heads = 0; }), "kv_heads is 0");
  CHECK(message([](QkRowsArgs& a) { a.rows = 0; }) == "launched");
}

}  // namespace broach
