// What the runtime itself costs: a look-up by shape, the host side of a launch, first use of a
// shape, and the same shape in the next process. Prints one JSON object.
//   runtime_bench [DEVICE]      DEVICE: host (default), cuda, cuda:N
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/bare_cuda.hpp"
#include "bench/must.hpp"
#include "bench/scratch_directory.hpp"
#include "broach/runtime.hpp"
#include "kernel_src/window_rows/params.h"
#include "runtime/compose.hpp"
#include "runtime/runtime_state.hpp"
#include "runtime/window_rows/chunk256_launch.hpp"
#include "runtime/window_rows/decode_args.hpp"
#include "specializer/plan.hpp"
#include "specializer/window_rows/shape.hpp"

namespace broach {
namespace {

using bench::must;
using Json = nlohmann::json;
using Clock = std::chrono::steady_clock;

/// Median and distance between the quartiles of a sample.
Json summary(std::vector<double> sample) {
  std::sort(sample.begin(), sample.end());
  const std::size_t count = sample.size();
  return {{"median", sample[count / 2]},
          {"spread", sample[count * 3 / 4] - sample[count / 4]},
          {"samples", count}};
}

double since(Clock::time_point start, double unit) {
  return std::chrono::duration<double>(Clock::now() - start).count() / unit;
}

/// Nanoseconds a call, over batches long enough for the clock.
Json time_calls(const std::function<void()>& call, int batches = 101, int calls = 2000) {
  std::vector<double> sample;
  for (int batch = -5; batch < batches; ++batch) {
    const auto start = Clock::now();
    for (int i = 0; i < calls; ++i) call();
    if (batch >= 0) sample.push_back(since(start, 1e-9) / calls);
  }
  return summary(std::move(sample));
}

WindowRowsShape gemma_shape(Form form, Arith arith, Switch p32 = Switch::kOff) {
  WindowRowsShape shape;
  shape.head_dim = 256;
  shape.gqa_ratio = 2;
  shape.window = 1024;
  shape.kv_layout = {KvLayoutKind::kRing, 1536};
  shape.form = form;
  shape.arith = arith;
  shape.p32 = p32;
  return shape;
}

/// The decode whose look-ups and launches are timed: its two functions are launched by the bare
/// driver too.
WindowRowsShape launched_shape() { return gemma_shape(Form::kDecode, Arith::kChunk256); }

struct Named {
  const char* name;
  WindowRowsShape shape;
};

/// What first use is timed for: what an engine asks for by default, and the largest prefill kernel.
std::vector<Named> first_used() {
  return {{"decode chunk256", launched_shape()},
          {"decode tile64", gemma_shape(Form::kDecode, Arith::kTile64)},
          {"prefill tile64", gemma_shape(Form::kPrefill, Arith::kTile64)},
          {"prefill tile64 p32", gemma_shape(Form::kPrefill, Arith::kTile64, Switch::kOn)}};
}

Options options_in(const bench::ScratchDirectory& dir, const std::string& device) {
  Options options = Options::from_environment();
  options.device = device;
  options.cache_directories = {dir.path()};
  options.read_only_caches.clear();
  return options;
}

/// A function that does nothing: what is left of a launch is the host's own cost.
class NoFunction final : public runtime::Function {
 public:
  Result<void> launch(const runtime::LaunchConfig& config) const override {
    seen_ = config.params;
    return {};
  }
  Result<LaunchLimits> live_limits() const override { return LaunchLimits{}; }

 private:
  mutable const void* volatile seen_ = nullptr;
};

class NoModule final : public runtime::Module {
 public:
  Result<const runtime::Function*> function(std::string_view) override {
    return static_cast<const runtime::Function*>(&function_);
  }

 private:
  NoFunction function_;
};

/// One row of a Gemma-like decode, every address and stride valid.
struct OneRow {
  OneRow(runtime::Device& device, const WindowRowsDecode& op) {
    constexpr std::int64_t kHeads = 8;
    const WindowRowsShape& shape = op.shape();
    const std::int64_t head_dim = shape.head_dim;
    args.attention.rows = args.cache.slots = 1;
    args.cache.kv_heads = kHeads;
    args.cache.length = 1536;
    args.attention.q_head_stride = args.attention.out_head_stride = head_dim;
    args.cache.k_head_stride = args.cache.v_head_stride = head_dim;
    args.cache.k_position_stride = args.cache.v_position_stride = kHeads * head_dim;
    args.workspace_bytes = op.workspace_bytes(1, kHeads, 0);
    const auto cache_bytes = static_cast<std::size_t>(1536 * kHeads * head_dim * 2);
    args.attention.q = must(device.allocate(1 << 16));
    args.attention.out = must(device.allocate(1 << 16));
    args.cache.k = must(device.allocate(cache_bytes));
    args.cache.v = must(device.allocate(cache_bytes));
    args.workspace = must(device.allocate(args.workspace_bytes));
    auto* numbers = static_cast<std::int32_t*>(must(device.allocate(256)));
    const std::int32_t zeros[2] = {0, 0};
    must(device.copy_to_device(numbers, zeros, sizeof zeros));
    args.positions = numbers;
    args.slots = numbers + 1;
  }

  WindowRowsDecodeArgs args;  // The process ends before the device does: nothing is given back.
};

Json bench_lookup(Runtime& runtime) {
  std::uint64_t sum = 0;
  const WindowRowsShape shape = launched_shape();
  Json timed = time_calls([&] {
    auto op = window_rows_decode(runtime, shape);
    sum += op->shape().head_dim;
  });
  if (sum == 0) std::abort();
  return timed;
}

Json bench_host_cost(runtime::Device& device, const WindowRowsDecode& op) {
  runtime::Operator::Loaded loaded{{}, std::make_unique<NoModule>(), {}};
  specializer::Plan plan;
  plan.entries = {{"partial", 256, 0}, {"combine", 256, 0}};
  loaded.launch =
      must(runtime::make_decode_launch(op.shape(), plan, *loaded.module, device.multiprocessors()));
  const WindowRowsDecode hollow(std::make_shared<runtime::Operator>(
      specializer::shape_of(op.shape()), nullptr, std::move(loaded)));
  const OneRow row(device, op);
  return time_calls([&] {
    if (!hollow.launch(row.args, nullptr)) std::abort();
  });
}

/// Nanoseconds a decode's two launches cost the host, by broach and by the driver alone. Fewer
/// launches a batch than a driver's queue holds, so that none waits for the device.
Json bench_launch(runtime::Device& device, specializer::Forge& forge, const WindowRowsDecode& op) {
  const auto plan = must(specializer::plan(op.shape(), device.target()));
  const auto binary = must(forge.obtain(plan, specializer::OnMiss::kCompile));
  const bench::BareCuda bare(plan, binary.object->payload);  // Makes its context current.
  const OneRow row(device, op);
  BroachWindowRowsDecode params = runtime::decode_params(op.shape(), row.args);
  const std::uint32_t chunks = runtime::chunk256_max_chunks(op.shape().window, 0);
  params.max_partials = static_cast<int>(chunks);
  const auto kv_heads = static_cast<std::uint32_t>(row.args.cache.kv_heads);
  const auto timed = [&](const std::function<bool()>& call) {
    std::vector<double> sample;
    for (int batch = -5; batch < 201; ++batch) {
      if (!device.synchronize(nullptr)) std::abort();
      const auto start = Clock::now();
      for (int i = 0; i < 100; ++i) {
        if (!call()) std::abort();
      }
      if (batch >= 0) sample.push_back(since(start, 1e-9) / 100);
    }
    return summary(std::move(sample));
  };
  const Json by_driver = timed([&] {
    return bare.launch(0, chunks, kv_heads, 1, params) &&
           bare.launch(1, kv_heads * op.shape().gqa_ratio, 1, 1, params);
  });
  const Json by_broach = timed([&] { return op.launch(row.args, nullptr).ok(); });
  return {{"decode_ns", by_broach}, {"bare_driver_ns", by_driver}};
}

/// The shape's own operator, made ready: a decode's and a prefill's are two.
void ask_for(Runtime& runtime, const WindowRowsShape& shape) {
  if (shape.form == Form::kPrefill) {
    must(window_rows_prefill(runtime, shape));
  } else {
    must(window_rows_decode(runtime, shape));
  }
}

/// Milliseconds from a request to a loaded operator with nothing in the cache, and how many of
/// them the compiler itself took.
Json bench_first_use(const std::string& device, const WindowRowsShape& shape) {
  std::vector<double> request;
  std::vector<double> compile;
  for (int i = 0; i < 5; ++i) {
    const bench::ScratchDirectory dir;
    auto runtime = must(Runtime::create(options_in(dir, device)));
    const auto start = Clock::now();
    ask_for(runtime, shape);
    request.push_back(since(start, 1e-3));
    Runtime::State& state = runtime.state();
    const auto plan = must(specializer::plan(shape, state.device->target()));
    const auto binary = must(state.forge.obtain(plan, specializer::OnMiss::kRefuse));
    compile.push_back(binary.object->provenance.compile_ms);
  }
  return {{"request_ms", summary(std::move(request))}, {"compile_ms", summary(std::move(compile))}};
}

/// The same shape when its object is on disk: the whole request, and the object alone.
Json bench_next_process(const std::string& device, const WindowRowsShape& shape) {
  const bench::ScratchDirectory dir;
  auto first = must(Runtime::create(options_in(dir, device)));
  ask_for(first, shape);
  std::vector<double> request;
  std::vector<double> object;
  for (int i = 0; i < 21; ++i) {
    {
      auto runtime = must(Runtime::create(options_in(dir, device)));
      const auto start = Clock::now();
      ask_for(runtime, shape);
      request.push_back(since(start, 1e-6));
    }
    auto runtime = must(Runtime::create(options_in(dir, device)));
    Runtime::State& state = runtime.state();
    const auto plan = must(specializer::plan(shape, state.device->target()));
    const auto start = Clock::now();
    must(state.forge.obtain(plan, specializer::OnMiss::kRefuse));
    object.push_back(since(start, 1e-6));
  }
  return {{"request_us", summary(request)}, {"object_us", summary(object)}};
}

}  // namespace
}  // namespace broach

int main(int argc, char* argv[]) {
  using namespace broach;
  const std::string name = argc > 1 ? argv[1] : "host";
  const bench::ScratchDirectory dir;
  auto runtime = must(Runtime::create(options_in(dir, name)));
  const WindowRowsDecode op = must(window_rows_decode(runtime, launched_shape()));
  runtime::Device& device = *runtime.state().device;

  Json report{{"device", runtime.device_name()},
              {"driver", device.driver()},
              {"target", runtime.target_name()},
              {"shape", "window_rows 16/8 x 256, window 1024, ring 1536"},
              {"looked_up_and_launched", "decode chunk256"}};
  report["lookup_ns"] = bench_lookup(runtime);
  report["host_cost_ns"] = bench_host_cost(device, op);
  for (const Named& one : first_used()) {
    report["first_use"][one.name] = bench_first_use(name, one.shape);
    report["next_process"][one.name] = bench_next_process(name, one.shape);
  }
  if (device.target().vendor == specializer::Vendor::kNvidia) {
    report["launch"] = bench_launch(device, runtime.state().forge, op);
  }
  fmt::print("{}\n", report.dump(2));
  return 0;
}
