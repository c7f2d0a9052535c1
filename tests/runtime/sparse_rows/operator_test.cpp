#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "broach/sparse_rows.hpp"
#include "broach/window_rows.hpp"
#include "common/half.cuh"
#include "tests/runtime/fixture.hpp"
#include "tests/support/catch.hpp"

namespace broach {
namespace {

SparseRowsShape shape_of(SparseTile tile, std::uint32_t compress_ratio) {
  SparseRowsShape shape;
  shape.head_dim = 64;
  shape.gqa_ratio = 2;
  shape.compress_ratio = compress_ratio;
  shape.tile = tile;
  shape.p_parts = 1;
  return shape;
}

void has(const std::string& text, const char* part) {
  INFO(text);
  CHECK(text.find(part) != std::string::npos);
}

}  // namespace

TEST_CASE("a dense row of sparse_rows mma has the bits of a window_rows decode",
          "[runtime][sparse_rows]") {
  const test::TempDir dir;
  auto runtime = Runtime::create(test::options_in(dir));
  REQUIRE(runtime);
  constexpr std::size_t kLength = 130;
  std::vector<std::uint16_t> q(2 * 64), k(kLength * 64), v(k.size()), sparse(q.size()),
      dense(q.size());
  for (std::size_t i = 0; i < k.size(); ++i) {
    k[i] = narrow<Half::kBf16>(0.01F * static_cast<float>(i * 37 % 101) - 0.5F);
    v[i] = narrow<Half::kBf16>(0.02F * static_cast<float>(i * 53 % 97) - 1.0F);
    if (i < q.size()) q[i] = narrow<Half::kBf16>(0.03F * static_cast<float>(i * 29 % 89) - 1.3F);
  }
  const std::vector<std::int32_t> position{129}, slot{0}, count{32};
  std::vector<std::int32_t> blocks;
  for (std::int32_t i = 0; i < 32; ++i) blocks.push_back(i);
  SparseRowsArgs args;
  args.attention.q = q.data();
  args.attention.out = sparse.data();
  args.attention.q_head_stride = args.attention.out_head_stride = 64;
  args.attention.q_row_stride = args.attention.out_row_stride = 128;
  args.attention.rows = 1;
  args.attention.scale = 0.2F;
  args.cache.k = k.data();
  args.cache.v = v.data();
  args.cache.k_head_stride = args.cache.v_head_stride = 64;
  args.cache.k_position_stride = args.cache.v_position_stride = 64;
  args.cache.k_slot_stride = args.cache.v_slot_stride = kLength * 64;
  args.cache.kv_heads = 1;
  args.cache.slots = 1;
  args.cache.length = kLength;
  args.positions = position.data();
  args.slots = slot.data();
  args.block_counts = count.data();
  args.blocks = blocks.data();
  auto op = sparse_rows_operator(*runtime, shape_of(SparseTile::kMma, 4), 4);
  REQUIRE(op);
  CHECK(op->workspace_bytes(1, 1) == 0);
  const auto launched = op->launch(args, nullptr);
  INFO((launched ? std::string() : launched.error().message));
  REQUIRE(launched);

  WindowRowsShape whole;
  whole.head_dim = 64;
  whole.gqa_ratio = 2;
  whole.arith = Arith::kTile64;
  auto decode = window_rows_decode(*runtime, whole);
  REQUIRE(decode);
  WindowRowsDecodeArgs step;
  step.attention = args.attention;
  step.attention.out = dense.data();
  step.cache = args.cache;
  step.positions = position.data();
  step.slots = slot.data();
  std::vector<double> workspace(decode->workspace_bytes(1, 1, kLength) / 8 + 2);
  step.workspace = workspace.data();
  step.workspace_bytes = workspace.size() * 8;
  REQUIRE(decode->launch(step, nullptr));
  CHECK(sparse == dense);

  SparseRowsArgs wrong = args;
  wrong.blocks = nullptr;
  const auto refused = op->launch(wrong, nullptr);
  REQUIRE_FALSE(refused);
  has(refused.error().message, "blocks is null");
}

TEST_CASE("a ratio that the model's config contradicts, or that mma lacks, is refused by name",
          "[runtime][sparse_rows]") {
  const test::TempDir dir;
  auto runtime = Runtime::create(test::options_in(dir));
  REQUIRE(runtime);
  const auto contradicted = sparse_rows_operator(*runtime, shape_of(SparseTile::kMma, 4), 8);
  REQUIRE_FALSE(contradicted);
  has(contradicted.error().message,
      "compress_ratio=4 contradicts the model's config, which states 8");
  const auto no_mma = sparse_rows_operator(*runtime, shape_of(SparseTile::kMma, 6), 6);
  REQUIRE_FALSE(no_mma);
  has(no_mma.error().message,
      "tile=mma needs compress_ratio in {1, 2, 4, 8, 16}; this shape has 6");
  has(no_mma.error().message, "tile=scalar");
}

TEST_CASE("the host's check of a selection names what is wrong with it", "[runtime][sparse_rows]") {
  const auto message = [](std::vector<std::int32_t> blocks) {
    const auto sound = check_sparse_selection(4, 50, blocks);
    return sound ? std::string("sound") : sound.error().message;
  };
  CHECK(message({}) == "sound");
  CHECK(message({0, 3, 11}) == "sound");  // Keys 44 to 47; 12 would end at 51.
  has(message({0, 12}), "blocks[1] is 12, which is past the row");
  has(message({-1}), "blocks[0] is -1");
  has(message({3, 3}), "blocks[1] is 3, repeated");
  has(message({5, 3}), "blocks[1] is 3 after 5");
  CHECK_FALSE(check_sparse_selection(0, 50, {}));
  CHECK_FALSE(check_sparse_selection(4, -1, {}));
}

}  // namespace broach
