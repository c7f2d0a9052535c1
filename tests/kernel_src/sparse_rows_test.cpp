#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/kernel_src/rows_kernel.hpp"
#include "tests/kernel_src/tile64_reference.hpp"
#include "tests/support/catch.hpp"

namespace broach::test {
namespace {

SparseRowsShape shape_of(SparseTile tile, std::uint32_t head_dim, std::uint32_t ratio,
                         std::uint32_t compress_ratio) {
  SparseRowsShape shape;
  shape.tile = tile;
  shape.head_dim = head_dim;
  shape.gqa_ratio = ratio;
  shape.compress_ratio = compress_ratio;
  return shape;
}

/// Rows of three streams: dense, empty (tail only, and nothing at all), one block, many; some at a
/// block's end, some in its middle.
SparseProblem ragged(const SparseRowsShape& shape) {
  SparseProblem p;
  p.shape = shape;
  p.positions = 704;
  const auto r = static_cast<int>(shape.compress_ratio);
  p.rows = {{0, 600, random_blocks(600, r, 30, 1)},
            {0, 601, every_block(601, r)},
            {0, 602, random_blocks(602, r, 5, 2)},
            {0, 603, {}},
            {1, 703, random_blocks(703, r, 1, 3)},
            {1, 0, {}},
            {2, r - 1, {}},
            {2, 2 * r, random_blocks(2 * r, r, 9, 4)},
            {0, 700, random_blocks(700, r, 40, 5)}};
  return p;
}

/// The largest distance from float64, over outputs that it says are finite; infinity where a class
/// (NaN, either infinity, finite) differs.
double worst_error(const SparseProblem& p, const std::vector<float>& values) {
  double worst = 0;
  std::size_t at = 0;
  for (const SparseRow& row : p.rows) {
    for (const double want : p.exact(row)) {
      const double got = double{values[at++]};
      const bool same_class = std::isfinite(want) ? std::isfinite(got)
                              : std::isnan(want)  ? std::isnan(got)
                                                  : got == want;
      if (!same_class) return std::numeric_limits<double>::infinity();
      if (std::isfinite(want)) worst = std::max(worst, std::abs(got - want));
    }
  }
  return worst;
}

std::vector<float> values_of(const SparseProblem& p, runtime::Device& device = rows_host()) {
  SparseTensors t(p);
  const auto ran = run_sparse(p, t, device);
  if (!ran) FAIL(ran.error().message);
  return t.values(p);
}

/// The outputs of row `row` of a launch.
std::vector<std::uint32_t> row_of(const SparseProblem& p, const std::vector<std::uint32_t>& bits,
                                  std::size_t row) {
  const std::size_t count = static_cast<std::size_t>(p.heads()) * p.dims();
  const auto first = bits.begin() + static_cast<std::ptrdiff_t>(row * count);
  return {first, first + static_cast<std::ptrdiff_t>(count)};
}

std::size_t different(const std::vector<std::uint32_t>& a, const std::vector<std::uint32_t>& b) {
  REQUIRE(a.size() == b.size());
  std::size_t count = 0;
  for (std::size_t i = 0; i < a.size(); ++i) count += a[i] != b[i] ? 1U : 0U;
  return count;
}

const SparseRowsShape kScalar = shape_of(SparseTile::kScalar, 64, 2, 4);
const SparseRowsShape kMma = shape_of(SparseTile::kMma, 64, 2, 4);

}  // namespace

TEST_CASE("scalar has the definition's bits for any ratio, part count and layout",
          "[kernel_src][sparse_rows]") {
  SparseRowsShape shape = kScalar;
  SECTION("as it is") {}
  SECTION("f16 pages, a ratio of 3") {
    shape = shape_of(SparseTile::kScalar, 80, 3, 3);
    shape.dtype = Dtype::kF16;
    shape.kv_layout = {KvLayoutKind::kPaged, 16};
  }
  SECTION("a ring, fp32 queries, 5 parts of blocks of 128") {
    shape = shape_of(SparseTile::kScalar, 64, 1, 128);
    shape.kv_layout = {KvLayoutKind::kRing, 1000};
    shape.part_count = 5;
    shape.q_dtype = QueryDtype::kF32;
  }
  SECTION("one part of blocks of 1, 6 query heads a KV head") {
    shape = shape_of(SparseTile::kScalar, 64, 6, 1);
    shape.part_count = 1;
  }
  const SparseProblem p = ragged(shape);
  INFO(specializer::to_json(shape));
  const auto want = ScalarReference{p}.all();
  CHECK(different(sparse_bits(p), want) == 0);
  if (shape.part_count > 1) {
    const auto parts = static_cast<int>(shape.part_count);
    CHECK(different(sparse_bits(p, rows_host(), {}, parts), want) == 0);
  }
  CHECK(different(sparse_bits(p, rows_host(), {"", Switch::kOn}), want) == 0);
}

TEST_CASE("both tiles are within 1e-5 of float64 and of each other", "[kernel_src][sparse_rows]") {
  SparseRowsShape shape = shape_of(SparseTile::kScalar, 256, 6, 4);
  shape.q_dtype = QueryDtype::kF32;
  SparseProblem p;
  p.shape = shape;
  p.kv_heads = 1;
  p.positions = 1100;
  p.k_scale = 0.1F;
  for (int i = 0; i < 5; ++i) {
    const int position = 1083 + i;
    p.rows.push_back({0, position, random_blocks(position, 4, i == 2 ? 271 : 100, 7)});
  }
  const auto scalar = values_of(p);
  CHECK(worst_error(p, scalar) <= 1e-5);
  p.shape.tile = SparseTile::kMma;
  const auto mma = values_of(p);
  CHECK(worst_error(p, mma) <= 1e-5);
  double apart = 0;
  for (std::size_t i = 0; i < mma.size(); ++i) {
    apart = std::max(apart, std::abs(double{scalar[i]} - double{mma[i]}));
  }
  CHECK(apart <= 1e-5);
  CHECK(apart > 0);
}

TEST_CASE("24 heads over 2 and 2,048 selected keys are within 1e-5 by both tiles",
          "[kernel_src][sparse_rows][slow]") {
  SparseRowsShape shape = shape_of(SparseTile::kScalar, 256, 12, 4);
  shape.q_dtype = QueryDtype::kF32;
  SparseProblem p;
  p.shape = shape;
  p.positions = 4096;
  p.k_scale = 0.1F;
  for (int i = 0; i < 8; ++i) p.rows.push_back({0, 4000 + i, random_blocks(4000 + i, 4, 512, 7)});
  CHECK(worst_error(p, values_of(p)) <= 1e-5);
  p.shape.tile = SparseTile::kMma;
  CHECK(worst_error(p, values_of(p)) <= 1e-5);
}

TEST_CASE("a dense row through mma has the bits of window_rows tile64",
          "[kernel_src][sparse_rows]") {
  SparseRowsShape shape = kMma;
  shape.compress_ratio = GENERATE(1U, 16U);
  shape.p_parts = shape.compress_ratio == 1 ? 1 : 2;
  if (shape.p_parts == 2) shape.dtype = Dtype::kF16;
  SparseProblem p;
  p.shape = shape;
  p.positions = 320;
  for (const int position : {0, 63, 64, 200, 319}) {
    p.rows.push_back({0, position, every_block(position, static_cast<int>(shape.compress_ratio))});
  }
  const auto got = sparse_bits(p);
  std::vector<std::uint32_t> want;
  const auto d = p.dims();
  for (const SparseRow& row : p.rows) {
    for (int head = 0; head < p.heads(); ++head) {
      Tile64Reference reference;
      reference.half = shape.dtype == Dtype::kBf16 ? Half::kBf16 : Half::kF16;
      reference.p32 = shape.p_parts == 2;
      reference.scale = p.scale;
      std::vector<std::uint16_t> q;
      std::vector<std::uint16_t> k;
      std::vector<std::uint16_t> v;
      for (std::size_t e = 0; e < d; ++e) {
        q.push_back(p.narrowed(p.query(row, head, static_cast<int>(e))));
      }
      for (int key = 0; key <= row.position; ++key) {
        for (std::size_t e = 0; e < d; ++e) {
          k.push_back(p.cached('k', 0, key, head / p.ratio(), static_cast<int>(e)));
          v.push_back(p.cached('v', 0, key, head / p.ratio(), static_cast<int>(e)));
        }
      }
      Tile64Reference::Row of;
      of.q = q;
      of.last = row.position;
      for (int key = 0; key <= row.position; ++key) {
        of.k.push_back(std::span(k).subspan(static_cast<std::size_t>(key) * d, d));
        of.v.push_back(std::span(v).subspan(static_cast<std::size_t>(key) * d, d));
      }
      for (const float value : reference.attend(of)) want.push_back(reference.rounded(value));
    }
  }
  CHECK(different(got, want) == 0);
}

TEST_CASE("a row's bits do not depend on the rows beside it", "[kernel_src][sparse_rows]") {
  const SparseTile tile = GENERATE(SparseTile::kScalar, SparseTile::kMma);
  const SparseProblem p = ragged(shape_of(tile, 64, 3, 4));
  const auto whole = sparse_bits(p);
  for (std::size_t row = 0; row < p.rows.size(); ++row) {
    SparseProblem alone = p;
    alone.rows = {p.rows[row]};
    alone.slot_shift = 1;
    alone.slots = 4;
    INFO("row " << row);
    CHECK(different(sparse_bits(alone), row_of(p, whole, row)) == 0);
  }
  SparseProblem reversed = p;
  std::reverse(reversed.rows.begin(), reversed.rows.end());
  const auto other = sparse_bits(reversed);
  for (std::size_t row = 0; row < p.rows.size(); ++row) {
    CHECK(different(row_of(p, other, p.rows.size() - 1 - row), row_of(p, whole, row)) == 0);
  }
}

TEST_CASE("a chunk cut anywhere modulo 64 gives the same bits", "[kernel_src][sparse_rows]") {
  SparseProblem p;
  p.shape = shape_of(SparseTile::kMma, 64, 1, 4);
  p.kv_heads = 1;
  p.positions = 256;
  for (int i = 0; i < 64; ++i) {
    const int position = 150 + i;
    p.rows.push_back({0, position, random_blocks(position, 4, 8, static_cast<std::uint32_t>(i))});
  }
  const auto whole = sparse_bits(p);
  const std::size_t row_values = static_cast<std::size_t>(p.heads()) * p.dims();
  std::size_t wrong = 0;
  for (std::size_t cut = 1; cut < 64; ++cut) {
    // Rows near the cut share tiles with others than before: four before and four after it.
    SparseProblem first = p;
    SparseProblem second = p;
    const std::size_t from = cut < 4 ? 0 : cut - 4;
    const std::size_t to = std::min<std::size_t>(cut + 4, 64);
    first.rows.assign(p.rows.begin() + static_cast<std::ptrdiff_t>(from),
                      p.rows.begin() + static_cast<std::ptrdiff_t>(cut));
    second.rows.assign(p.rows.begin() + static_cast<std::ptrdiff_t>(cut),
                       p.rows.begin() + static_cast<std::ptrdiff_t>(to));
    auto bits = sparse_bits(first);
    const auto rest = sparse_bits(second);
    bits.insert(bits.end(), rest.begin(), rest.end());
    for (std::size_t i = 0; i < bits.size(); ++i) {
      wrong += bits[i] != whole[from * row_values + i] ? 1U : 0U;
    }
  }
  CHECK(wrong == 0);
}

TEST_CASE("linear, ring and shuffled pages give the same bits, and so does the generic kernel",
          "[kernel_src][sparse_rows]") {
  const SparseTile tile = GENERATE(SparseTile::kScalar, SparseTile::kMma);
  SparseProblem p = ragged(shape_of(tile, 64, 2, 4));
  const auto bits = sparse_bits(p);
  CHECK(different(sparse_bits(p, rows_host(), {"", Switch::kOn}), bits) == 0);
  p.shape.kv_layout = {KvLayoutKind::kRing, 800};
  CHECK(different(sparse_bits(p), bits) == 0);
  p.shape.kv_layout = {KvLayoutKind::kPaged, 16};
  CHECK(different(sparse_bits(p), bits) == 0);
  p.positions = 11264;
  CHECK(different(sparse_bits(p), bits) == 0);
}

TEST_CASE("a NaN or infinity that a row did not select never reaches it",
          "[kernel_src][sparse_rows]") {
  const SparseTile tile = GENERATE(SparseTile::kScalar, SparseTile::kMma);
  SparseProblem p = ragged(shape_of(tile, 64, 2, 4));
  const auto clean = sparse_bits(p);
  const std::uint16_t bad = GENERATE(as<std::uint16_t>{}, 0x7fc0, 0x7f80, 0xff80);
  // Row 1 is dense: it alone selects key 100 when the others' blocks are dropped there.
  for (std::size_t row : {0U, 2U, 8U}) {
    auto& blocks = p.rows[row].blocks;
    std::erase(blocks, 25);
  }
  SparseProblem without = p;
  const auto before = sparse_bits(without);
  p.plants = {{'v', 0, 100, 1, 7, bad}};
  SECTION("a value") {}
  SECTION("a key") { p.plants[0].tensor = 'k'; }
  SECTION("a value at a weight that only float64 can hold") { p.k_scale = without.k_scale = 40.0F; }
  const auto got = sparse_bits(p);
  SparseTensors t(p);
  REQUIRE(run_sparse(p, t));
  CHECK(worst_error(p, t.values(p)) < 0.02);
  const auto base = p.k_scale == 40.0F ? sparse_bits(without) : before;
  for (std::size_t row = 0; row < p.rows.size(); ++row) {
    INFO("row " << row);
    CHECK((different(row_of(p, got, row), row_of(p, base, row)) == 0) == (row != 1));
  }
  CHECK(clean.size() == got.size());
}

TEST_CASE("a checked sparse_rows names the block id, slot or position that is wrong",
          "[kernel_src][sparse_rows]") {
  SparseRowsShape shape = shape_of(GENERATE(SparseTile::kScalar, SparseTile::kMma), 64, 2, 4);
  shape.checked = Switch::kOn;
  SparseProblem p;
  p.shape = shape;
  p.positions = 64;
  p.rows = {{0, 50, {2, 5, 7}}, {0, 51, {1, 3, 12}}};
  const auto message = [&](const auto& spoil) {
    SparseTensors t(p);
    spoil(t);
    const auto ran = run_sparse(p, t);
    return ran ? std::string("ran") : ran.error().message;
  };
  const auto has = [](const std::string& text, const char* part) {
    INFO(text);
    CHECK(text.find(part) != std::string::npos);
  };
  CHECK(message([](SparseTensors&) {}) == "ran");
  has(message([](SparseTensors& t) { t.blocks[1] = 1; }), "block ids are out of order: 1");
  has(message([](SparseTensors& t) { t.blocks[4] = 1; }), "block id is repeated: 1");
  has(message([](SparseTensors& t) { t.blocks[2] = 12; }), "block is past its position: 12");
  has(message([](SparseTensors& t) { t.blocks[0] = -1; }), "block id is negative: -1");
  has(message([](SparseTensors& t) { t.counts[0] = -2; }), "block count is negative: -2");
  has(message([](SparseTensors& t) { t.slots[0] = 3; }), "slot is outside 0 to slots - 1: 3");
  has(message([](SparseTensors& t) { t.positions[1] = 64; }), "past its slot's length: 64");
}

// The contract's quick sweep sees each by its gate.
TEST_CASE("every planted fault of sparse_rows changes outputs", "[kernel_src][sparse_rows][slow]") {
  struct Fault {
    const char* control;
    bool scalar, mma;
  };
  const Fault fault = GENERATE(values<Fault>({{"unmasked_block", true, true},
                                              {"causal_off_by_one", true, true},
                                              {"ratio_off_by_one", true, true},
                                              {"union_unmasked", false, true},
                                              {"part_dropped", false, true},
                                              {"merge_unscaled", true, true}}));
  INFO(fault.control);
  for (const SparseTile tile : {SparseTile::kScalar, SparseTile::kMma}) {
    if (tile == SparseTile::kScalar ? !fault.scalar : !fault.mma) continue;
    SparseProblem p = ragged(shape_of(tile, 64, 2, 4));
    p.shape.q_dtype = QueryDtype::kF32;
    p.unselected = 0;
    CHECK(different(sparse_bits(p), sparse_bits(p, rows_host(), {fault.control})) > 0);
  }
}

TEST_CASE("a GPU's sparse_rows has the host's bits", "[kernel_src][sparse_rows][gpu]") {
  auto gpu = runtime::open_device("cuda");
  if (!gpu) BROACH_SKIP("no GPU: " + gpu.error().message);
  std::vector<SparseRowsShape> shapes;
  for (const SparseTile tile : {SparseTile::kScalar, SparseTile::kMma}) {
    shapes.push_back(shape_of(tile, 64, 2, 4));
    shapes.push_back(shape_of(tile, 80, 3, 16));
    shapes.back().dtype = Dtype::kF16;
    shapes.back().kv_layout = {KvLayoutKind::kPaged, 16};
    shapes.push_back(shape_of(tile, 128, 16, 1));
    shapes.push_back(shape_of(tile, 256, 12, 4));
    shapes.back().q_dtype = QueryDtype::kF32;
    shapes.push_back(shape_of(tile, 512, 1, 8));
    shapes.back().p_parts = 2;
  }
  for (const SparseRowsShape& shape : shapes) {
    INFO(specializer::to_json(shape));
    SparseProblem p = ragged(shape);
    p.plants = {{'v', 0, 100, 1, 7, 0x7f80}};
    const bool one_k16 = (*gpu)->target().mma_step == specializer::MmaStep::kOneK16;
    if (shape.tile == SparseTile::kMma && !one_k16) continue;
    const auto host = sparse_bits(p);
    CHECK(different(sparse_bits(p, **gpu), host) == 0);
    CHECK(different(sparse_bits(p, **gpu, {"", Switch::kOn}), host) == 0);
    if (shape.tile == SparseTile::kScalar) {
      CHECK(different(sparse_bits(p, **gpu, {}, 16), host) == 0);
    }
  }
}

}  // namespace broach::test
