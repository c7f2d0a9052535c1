// Device time and bytes of sparse_rows launches, scalar and mma, random and clustered selections,
// beside a dense window_rows prefill of the same rows and keys. Graph replay; prints JSON lines.
//   sparse_rows_bench [KEYS]      keys in the cache before the rows, 8192 by default
#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstdlib>
#include <numeric>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "bench/cuda_graph.hpp"
#include "bench/must.hpp"
#include "broach/runtime.hpp"
#include "broach/sparse_rows.hpp"
#include "broach/window_rows.hpp"
#include "runtime/runtime_state.hpp"

namespace broach::bench {
namespace {

constexpr std::int32_t kKvHeads = 2;
constexpr std::int32_t kRatio = 12;
constexpr std::int32_t kHeadDim = 256;
constexpr std::int32_t kBlock = 4;
constexpr std::int32_t kBudget = 512;  // Blocks a row.
constexpr std::int32_t kCluster = 16;  // Blocks of a run.
constexpr int kLaunches = 10;
constexpr int kReplays = 7;

class Memory {
 public:
  explicit Memory(runtime::Device& device) : device_(device) {}
  ~Memory() {
    for (void* memory : taken_) device_.free(memory);
  }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  void* take(std::size_t bytes) {
    taken_.push_back(must(device_.allocate(std::max<std::size_t>(bytes, 16))));
    return taken_.back();
  }
  template <class T>
  T* copy(const std::vector<T>& from) {
    void* memory = take(from.size() * sizeof(T));
    must(device_.copy_to_device(memory, from.data(), from.size() * sizeof(T)));
    return static_cast<T*>(memory);
  }
  void* values(std::size_t elements, float sigma) {
    std::mt19937 random(7);
    std::normal_distribution<float> normal(0, sigma);
    std::vector<std::uint16_t> drawn(elements);
    for (std::size_t i = 0; i < elements; ++i) {
      drawn[i] =
          i < 65536 ? static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(normal(random)) >> 16)
                    : drawn[i % 65521];
    }
    return copy(drawn);
  }

 private:
  runtime::Device& device_;
  std::vector<void*> taken_;
};

/// A row's blocks: drawn for it alone, or in runs that sixteen rows beside each other share, as an
/// indexer's picks of neighbours mostly are.
std::vector<std::int32_t> selection(std::int32_t row, std::int32_t position, bool clustered) {
  const std::int32_t all = (position + 1) / kBlock;
  const std::int32_t run = clustered ? kCluster : 1;
  std::mt19937 random(static_cast<std::uint32_t>(clustered ? row / 16 : row));
  std::set<std::int32_t> picked;
  std::uniform_int_distribution<std::int32_t> draw(0, all / run);
  while (static_cast<std::int32_t>(picked.size()) < std::min(kBudget, all)) {
    const std::int32_t first = draw(random) * run;
    for (std::int32_t i = first; i < first + run && i < all; ++i) {
      if (static_cast<std::int32_t>(picked.size()) < kBudget) picked.insert(i);
    }
  }
  return {picked.begin(), picked.end()};
}

double median_us(const std::function<void(void*)>& launch) {
  CudaGraph graph;
  graph.record([&](void* stream) {
    for (int i = 0; i < kLaunches; ++i) launch(stream);
  });
  std::vector<double> times;
  for (int i = 0; i < kReplays; ++i) times.push_back(graph.replay_us() / kLaunches);
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

void print(const char* what, const char* picks, std::int32_t rows, double us, double bytes) {
  fmt::print(
      "{{\"kernel\": \"{}\", \"selection\": \"{}\", \"rows\": {}, \"us\": {:.1f}, "
      "\"kv_bytes\": {:.0f}, \"kv_GB_per_s\": {:.0f}}}\n",
      what, picks, rows, us, bytes, bytes / us / 1e3);
}

void run(Runtime& runtime, std::int32_t keys, std::int32_t rows) {
  runtime::Device& device = *runtime.state().device;
  Memory memory(device);
  const std::int32_t length = keys + rows;
  const std::size_t row_elems = static_cast<std::size_t>(kKvHeads) * kHeadDim;
  const std::size_t q_elems = row_elems * kRatio * static_cast<std::size_t>(rows);
  SparseRowsArgs args;
  args.attention.q = memory.values(q_elems, 1.0F);
  args.attention.out = memory.take(q_elems * 2);
  args.attention.q_head_stride = args.attention.out_head_stride = kHeadDim;
  args.attention.q_row_stride = args.attention.out_row_stride =
      static_cast<std::int64_t>(row_elems * kRatio);
  args.attention.rows = rows;
  args.attention.scale = 1.0F / 16;
  args.cache.k = memory.values(static_cast<std::size_t>(length) * row_elems, 0.5F);
  args.cache.v = memory.values(static_cast<std::size_t>(length) * row_elems, 1.0F);
  args.cache.k_head_stride = args.cache.v_head_stride = kHeadDim;
  args.cache.k_position_stride = args.cache.v_position_stride =
      static_cast<std::int64_t>(row_elems);
  args.cache.k_slot_stride = args.cache.v_slot_stride =
      static_cast<std::int64_t>(static_cast<std::size_t>(length) * row_elems);
  args.cache.kv_heads = kKvHeads;
  args.cache.slots = 1;
  args.cache.length = length;
  std::vector<std::int32_t> positions(static_cast<std::size_t>(rows));
  std::iota(positions.begin(), positions.end(), keys);
  args.positions = memory.copy(positions);
  args.slots = memory.copy(std::vector<std::int32_t>(static_cast<std::size_t>(rows), 0));
  args.block_row_stride = kBudget;

  for (const bool clustered : {false, true}) {
    const char* const picks = clustered ? "clustered" : "random";
    std::vector<std::int32_t> counts;
    std::vector<std::int32_t> blocks;
    double scalar_keys = 0;
    double union_keys = 0;
    std::set<std::int32_t> group;
    for (std::int32_t row = 0; row < rows; ++row) {
      const auto picked = selection(row, keys + row, clustered);
      counts.push_back(static_cast<std::int32_t>(picked.size()));
      scalar_keys += static_cast<double>(picked.size()) * kBlock;
      if (row % 4 == 0) group.clear();
      group.insert(picked.begin(), picked.end());
      if (row % 4 == 3 || row + 1 == rows) union_keys += static_cast<double>(group.size()) * kBlock;
      blocks.insert(blocks.end(), picked.begin(), picked.end());
      blocks.resize(static_cast<std::size_t>(row + 1) * kBudget, 0);
    }
    args.block_counts = memory.copy(counts);
    args.blocks = memory.copy(blocks);
    for (const SparseTile tile : {SparseTile::kScalar, SparseTile::kMma}) {
      SparseRowsShape shape;
      shape.head_dim = kHeadDim;
      shape.gqa_ratio = kRatio;
      shape.compress_ratio = kBlock;
      shape.tile = tile;
      const SparseRows op = must(sparse_rows_operator(runtime, shape, kBlock));
      args.workspace_bytes = op.workspace_bytes(rows, kKvHeads);
      args.workspace = memory.take(args.workspace_bytes);
      const double us = median_us([&](void* stream) { must(op.launch(args, stream)); });
      // K and V of every key that is read, once a row or once a group of four.
      const double bytes =
          (tile == SparseTile::kScalar ? scalar_keys : union_keys) * kKvHeads * kHeadDim * 4;
      print(tile == SparseTile::kScalar ? "sparse_rows scalar" : "sparse_rows mma", picks, rows, us,
            bytes);
    }
  }

  WindowRowsShape dense;
  dense.head_dim = kHeadDim;
  dense.gqa_ratio = kRatio;
  const WindowRowsPrefill prefill = must(window_rows_prefill(runtime, dense));
  WindowRowsPrefillArgs whole;
  whole.attention = args.attention;
  whole.cache = args.cache;
  whole.positions = memory.copy(std::vector<std::int32_t>{keys});
  whole.slots = args.slots;
  whole.offsets = memory.copy(std::vector<std::int32_t>{0, rows});
  whole.sequences = 1;
  const double us = median_us([&](void* stream) { must(prefill.launch(whole, stream)); });
  print("window_rows prefill", "dense", rows, us,
        static_cast<double>(length) * kKvHeads * kHeadDim * 4);
}

}  // namespace
}  // namespace broach::bench

int main(int argc, char** argv) {
  using namespace broach;
  Options options = Options::from_environment();
  options.device = "cuda";
  Runtime runtime = bench::must(Runtime::create(std::move(options)));
  const int keys = argc > 1 ? std::atoi(argv[1]) : 8192;
  for (const std::int32_t rows : {64, 256, 512, 2048}) bench::run(runtime, keys, rows);
  return 0;
}
