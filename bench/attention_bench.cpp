// Device time of attention launches: graph replay, caches rotated past L2. Prints JSON.
//   attention_bench [--match TEXT] [--repeats N]
//   attention_bench --list        the cases as JSON, which rivals read; needs no GPU
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "bench/attention_cases.hpp"
#include "bench/cuda_graph.hpp"
#include "bench/must.hpp"
#include "broach/runtime.hpp"
#include "runtime/runtime_state.hpp"
#include "specializer/window_rows/shape.hpp"

namespace broach::bench {
namespace {

using Json = nlohmann::json;

/// Caches that the launches of one replay walk through, so that none finds its own in L2.
constexpr std::size_t kRotatedBytes = std::size_t{512} << 20;
constexpr int kLeastLaunches = 20;

/// Device memory until the case ends.
class Arena {
 public:
  explicit Arena(runtime::Device& device) : device_(device) {}
  ~Arena() {
    for (void* memory : taken_) device_.free(memory);
  }
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  void* take(std::size_t bytes) {
    taken_.push_back(must(device_.allocate(bytes)));
    return taken_.back();
  }
  /// bf16 values of a normal distribution, `sigma` wide; one stretch of them, repeated.
  void* take_values(std::size_t elements, float sigma) {
    std::mt19937 random(7);
    std::normal_distribution<float> normal(0, sigma);
    std::vector<std::uint16_t> values(std::min<std::size_t>(elements, (1U << 22) + 77));
    for (std::uint16_t& value : values) {
      const float drawn = normal(random);
      value = static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(drawn) >> 16);
    }
    auto* memory = static_cast<std::uint16_t*>(take(elements * 2));
    for (std::size_t at = 0; at < elements; at += values.size()) {
      const std::size_t count = std::min(values.size(), elements - at);
      must(device_.copy_to_device(memory + at, values.data(), count * 2));
    }
    return memory;
  }
  const std::int32_t* take_numbers(const std::vector<std::int32_t>& numbers) {
    void* memory = take(numbers.size() * 4);
    must(device_.copy_to_device(memory, numbers.data(), numbers.size() * 4));
    return static_cast<const std::int32_t*>(memory);
  }

 private:
  runtime::Device& device_;
  std::vector<void*> taken_;
};

/// An operator of a case's form.
struct Operator {
  std::optional<WindowRowsDecode> decode;
  std::optional<WindowRowsPrefill> prefill;

  WindowRowsShape shape() const { return decode ? decode->shape() : prefill->shape(); }
};

Result<Operator> operator_of(Runtime& runtime, const WindowRowsShape& shape) {
  if (shape.form == Form::kPrefill) {
    auto op = window_rows_prefill(runtime, shape);
    if (!op) return op.error();
    return Operator{{}, *op};
  }
  auto op = window_rows_decode(runtime, shape);
  if (!op) return op.error();
  return Operator{*op, {}};
}

/// A case's launches: the same work on one copy of the caches after another.
struct Launches {
  WindowRowsPrefillArgs prefill;
  WindowRowsDecodeArgs decode;
  std::vector<const std::int32_t*> slots;  ///< A copy's.
};

Launches lay_out(const AttentionCase& timed, const Operator& op, Arena& arena) {
  const std::int64_t head_dim = timed.shape.head_dim;
  const std::int32_t streams = timed.is_prefill() ? 1 : timed.rows;
  const std::int32_t length = timed.shape.kv_layout.kind == KvLayoutKind::kRing
                                  ? static_cast<std::int32_t>(timed.shape.kv_layout.length)
                                  : timed.keys;
  const std::int64_t slot_elements = std::int64_t{length} * timed.kv_heads * head_dim;
  const auto copy_bytes = static_cast<std::size_t>(streams * slot_elements * 2 * 2);
  const auto copies = static_cast<std::int32_t>(
      std::max<std::size_t>(3, (kRotatedBytes + copy_bytes - 1) / copy_bytes));

  Launches made;
  WindowRowsDecodeArgs& args = made.decode;
  args.attention.rows = timed.rows;
  args.cache.kv_heads = timed.kv_heads;
  args.cache.slots = copies * streams;
  args.cache.length = length;
  args.max_keys = timed.keys;
  args.attention.scale = 1.0F / 16.0F;
  args.attention.q_head_stride = args.attention.out_head_stride = head_dim;
  args.attention.q_row_stride = args.attention.out_row_stride = timed.heads() * head_dim;
  args.cache.k_head_stride = args.cache.v_head_stride = head_dim;
  args.cache.k_position_stride = args.cache.v_position_stride = timed.kv_heads * head_dim;
  args.cache.k_slot_stride = args.cache.v_slot_stride = slot_elements;
  const auto cache_elements =
      static_cast<std::size_t>(slot_elements) * static_cast<std::size_t>(args.cache.slots);
  const auto row_elements =
      static_cast<std::size_t>(std::int64_t{timed.rows} * timed.heads() * head_dim);
  args.attention.q = arena.take_values(row_elements, 1.0F);
  args.cache.k = arena.take_values(cache_elements, 1.0F);
  args.cache.v = arena.take_values(cache_elements, 1.0F);
  args.attention.out = arena.take(row_elements * 2);
  const std::vector<std::int32_t> positions(
      static_cast<std::size_t>(streams),
      timed.is_prefill() ? timed.keys - timed.rows : timed.keys - 1);
  args.positions = arena.take_numbers(positions);
  for (std::int32_t copy = 0; copy < copies; ++copy) {
    std::vector<std::int32_t> slots;
    for (std::int32_t i = 0; i < streams; ++i) slots.push_back(copy * streams + i);
    made.slots.push_back(arena.take_numbers(slots));
  }
  if (timed.is_prefill()) {
    made.prefill.attention = args.attention;
    made.prefill.cache = args.cache;
    made.prefill.positions = args.positions;
    made.prefill.max_keys = args.max_keys;
    made.prefill.sequences = 1;
    made.prefill.offsets = arena.take_numbers({0, timed.rows});
  } else {
    args.workspace_bytes = op.decode->workspace_bytes(timed.rows, timed.kv_heads, timed.keys);
    args.workspace = arena.take(std::max<std::size_t>(args.workspace_bytes, 16));
  }
  return made;
}

Json list_cases(const std::vector<AttentionCase>& cases) {
  Json rows = Json::array();
  for (const AttentionCase& each : cases) {
    rows.push_back({{"case", each.name},
                    {"form", specializer::name_of(each.shape.form)},
                    {"arith", specializer::name_of(each.shape.arith)},
                    {"p32", each.shape.p32 == Switch::kOn},
                    {"head_dim", each.shape.head_dim},
                    {"gqa_ratio", each.shape.gqa_ratio},
                    {"kv_heads", each.kv_heads},
                    {"window", each.shape.window},
                    {"rows", each.rows},
                    {"keys", each.keys}});
  }
  return rows;
}

Json time_case(Runtime& runtime, const AttentionCase& timed, int repeats) {
  Json row{{"case", timed.name}, {"bytes", timed.bytes()}, {"operations", timed.operations()}};
  auto op = operator_of(runtime, timed.shape);
  if (!op) {
    row["error"] = op.error().message;
    return row;
  }
  row["arith"] = specializer::name_of(op->shape().arith);
  Arena arena(*runtime.state().device);
  Launches launches = lay_out(timed, *op, arena);
  const auto copies = static_cast<int>(launches.slots.size());
  const int count = timed.is_prefill() ? copies : std::max(copies, kLeastLaunches);
  CudaGraph graph;
  graph.record([&](void* stream) {
    for (int i = 0; i < count; ++i) {
      const std::int32_t* slots = launches.slots[static_cast<std::size_t>(i % copies)];
      launches.decode.slots = launches.prefill.slots = slots;
      must(timed.is_prefill() ? op->prefill->launch(launches.prefill, stream)
                              : op->decode->launch(launches.decode, stream));
    }
  });
  std::vector<double> sample;
  for (int i = -3; i < repeats; ++i) {
    const double us = graph.replay_us() / count;
    if (i >= 0) sample.push_back(us);
  }
  std::sort(sample.begin(), sample.end());
  const double median = sample[sample.size() / 2];
  row["launches"] = count;
  row["copies"] = copies;
  row["median_us"] = median;
  row["spread_us"] = sample[sample.size() * 3 / 4] - sample[sample.size() / 4];
  row["terabytes_a_second"] = timed.bytes() / median * 1e-6;
  row["teraflops"] = timed.operations() / median * 1e-6;
  return row;
}

}  // namespace
}  // namespace broach::bench

int main(int argc, char* argv[]) {
  using namespace broach;
  CLI::App app("Device time of attention launches");
  std::string match;
  int repeats = 21;
  bool list = false;
  app.add_flag("--list", list, "Print the cases and time nothing");
  app.add_option("--match", match, "Only the cases whose name holds this text");
  app.add_option("--repeats", repeats, "Replays that are timed")->check(CLI::PositiveNumber);
  CLI11_PARSE(app, argc, argv);

  const auto cases = bench::attention_cases();
  if (list) {
    fmt::print("{}\n", bench::list_cases(cases).dump(2));
    return 0;
  }
  Options options = Options::from_environment();
  options.device = "cuda";
  auto runtime = bench::must(Runtime::create(options));
  nlohmann::json rows = nlohmann::json::array();
  for (const bench::AttentionCase& timed : cases) {
    if (timed.name.find(match) == std::string::npos) continue;
    rows.push_back(bench::time_case(runtime, timed, repeats));
    std::fflush(stdout);
  }
  fmt::print("{}\n", nlohmann::json{{"device", runtime.device_name()},
                                    {"driver", runtime.state().device->driver()},
                                    {"cases", rows}}
                         .dump(2));
  return 0;
}
