// What only a live GPU can show. Skipped, with the reason, where there is none.
#include <algorithm>
#include <atomic>
#include <thread>
#include <utility>
#include <vector>

#include "broach/runtime.hpp"
#include "runtime/load_plan.hpp"
#include "specializer/plan.hpp"
#include "specializer/window_rows/shape.hpp"
#include "tests/runtime/allocation_count.hpp"
#include "tests/runtime/cuda/capture.hpp"
#include "tests/runtime/fixture.hpp"
#include "tests/support/catch.hpp"
#include "tools/contract/window_rows/launch.hpp"
#include "tools/contract/window_rows/run.hpp"

namespace broach {
namespace {

using contract::window_rows::Decoder;
using contract::window_rows::decoder_of;

/// The first CUDA device, or the reason there is none.
Result<std::shared_ptr<runtime::Device>> gpu() { return runtime::open_device("cuda"); }

/// Every combination of compile-time choices that changes the code, in each form and arithmetic.
std::vector<WindowRowsShape> all_shapes() {
  std::vector<WindowRowsShape> shapes;
  for (const auto& [form, arith] : {std::pair{Form::kDecode, Arith::kChunk256},
                                    {Form::kDecode, Arith::kTile64},
                                    {Form::kPrefill, Arith::kTile64},
                                    {Form::kDecode, Arith::kTile64Ex2},
                                    {Form::kPrefill, Arith::kTile64Ex2},
                                    {Form::kPrefill, Arith::kMma32}}) {
    for (const std::uint32_t head_dim : {64U, 80U, 96U, 112U, 128U, 192U, 256U, 512U}) {
      for (const std::uint32_t gqa_ratio : {1U, 2U, 3U, 5U, 7U, 8U, 12U, 16U, 32U}) {
        WindowRowsShape shape;
        shape.form = form;
        shape.arith = arith;
        shape.head_dim = head_dim;
        shape.gqa_ratio = gqa_ratio;
        shape.dtype = (head_dim / 16 + gqa_ratio) % 2 == 0 ? Dtype::kBf16 : Dtype::kF16;
        shape.window = gqa_ratio % 2 == 0 ? 1024 : 0;
        if (shape.window != 0) shape.kv_layout = {KvLayoutKind::kRing, 1536};
        shape.softcap = gqa_ratio % 3 == 0 ? Switch::kOn : Switch::kOff;
        shape.sinks = gqa_ratio % 5 == 0 ? Switch::kOn : Switch::kOff;
        if (form == Form::kPrefill && gqa_ratio % 4 == 0) shape.p32 = Switch::kOn;
        shapes.push_back(shape);
      }
    }
  }
  return shapes;
}

/// The plans of the shapes that the target serves, compiled side by side.
std::vector<specializer::Plan> compiled_plans(specializer::Forge& forge,
                                              const specializer::Target& target) {
  std::vector<specializer::Plan> plans;
  for (const WindowRowsShape& shape : all_shapes()) {
    auto plan = specializer::plan(shape, target);
    if (!plan && plan.error().code == ErrorCode::kUnsupported) continue;
    REQUIRE(plan);
    plans.push_back(*std::move(plan));
  }
  std::atomic<std::size_t> next{0};
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < std::max(std::thread::hardware_concurrency(), 1U); ++i) {
    threads.emplace_back([&] {
      for (std::size_t at = next++; at < plans.size(); at = next++) {
        // What fails here fails again, and is judged, where it is loaded.
        static_cast<void>(forge.obtain(plans[at], specializer::OnMiss::kCompile));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return plans;
}

void check_limits(const LaunchLimits& recorded, const LaunchLimits& live) {
  INFO(recorded.function << " from " << recorded.source);
  if (recorded.registers) CHECK(live.registers == recorded.registers);
  if (recorded.stack_bytes) CHECK(live.stack_bytes == recorded.stack_bytes);
  if (recorded.static_shared) CHECK(live.static_shared == recorded.static_shared);
  if (recorded.constant_bytes) CHECK(live.constant_bytes == recorded.constant_bytes);
  if (recorded.max_threads) CHECK(live.max_threads == recorded.max_threads);
  if (recorded.max_dynamic_shared) CHECK(live.max_dynamic_shared == recorded.max_dynamic_shared);
}

}  // namespace

TEST_CASE("the live attributes of every shape are the recorded limits",
          "[runtime][cuda][limits][gpu]") {
  auto device = gpu();
  if (!device) BROACH_SKIP(device.error().message);
  const test::TempDir dir;
  auto forge = runtime::open_forge(test::options_in(dir));
  int compared = 0;
  for (const specializer::Plan& plan : compiled_plans(forge, (*device)->target())) {
    INFO(plan.shape_json);
    auto loaded = runtime::load_plan(forge, **device, plan, specializer::OnMiss::kCompile);
    REQUIRE(loaded);
    REQUIRE(loaded->live.size() == plan.entries.size());
    for (const LaunchLimits& live : loaded->live) {
      const auto& all = loaded->artifact.object->limits;
      const auto recorded = std::find_if(all.begin(), all.end(), [&](const LaunchLimits& each) {
        return each.function == live.function;
      });
      REQUIRE(recorded != all.end());
      CHECK(recorded->registers);
      check_limits(*recorded, live);
      ++compared;
    }
  }
  CHECK(compared >= 200);
}

TEST_CASE("a decode is captured without an allocation and replayed to the same bits",
          "[runtime][cuda][gpu]") {
  auto device = gpu();
  if (!device) BROACH_SKIP(device.error().message);
  const test::PrimaryContext engine;
  REQUIRE(engine.ok());
  test::Capture capture;
  REQUIRE(capture.ok());
  const test::TempDir dir;
  auto runtime = Runtime::create(test::options_in(dir, "cuda"));
  REQUIRE(runtime);
  runtime::Device& on = *runtime->state().device;
  const auto gemma = contract::window_rows::gemma_decode(3, contract::window_rows::CaseSize::kFull);
  auto problem = contract::window_rows::make_problem(gemma.recipe);
  REQUIRE(problem);
  auto op = window_rows_decode(*runtime, problem->shape);
  REQUIRE(op);
  problem->shape = op->shape();
  auto uploaded = contract::window_rows::DeviceProblem::upload(on, *problem);
  REQUIRE(uploaded);
  const auto expected = uploaded->run(decoder_of(*op), contract::Poison::kNan);
  REQUIRE(expected);
  auto args = uploaded->args(decoder_of(*op));
  REQUIRE(args);

  const std::size_t free_before = capture.free_bytes();
  REQUIRE(capture.begin());
  const std::uint64_t allocations = test::allocation_count();
  const bool captured = op->launch(args->decode(), capture.stream()).ok();
  CHECK(test::allocation_count() == allocations);
  REQUIRE(captured);

  // A shape that is not loaded is refused while the stream captures, and the capture lives on.
  WindowRowsShape other = problem->shape;
  other.gqa_ratio = 4;
  const auto refused = window_rows_decode(*runtime, other, capture.stream());
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::kCapturing);
  REQUIRE(window_rows_decode(*runtime, problem->shape, capture.stream()));
  REQUIRE(capture.end());
  CHECK(capture.free_bytes() == free_before);
  CHECK(capture.nodes() == 2);

  REQUIRE(capture.instantiate());
  Decoder replay = decoder_of(*op);
  replay.decode = [&](const broach_window_rows_decode_args& poisoned) -> Result<void> {
    // The graph holds the pointers of `args`: poison went there through the same problem.
    REQUIRE(poisoned.attention.out == args->attention.out);
    // The copies went to the default stream, for which the capture's stream does not wait.
    if (auto copied = on.synchronize(nullptr); !copied) return copied;
    if (!capture.replay()) return Error{ErrorCode::kDriver, "the replay failed", {}};
    return {};
  };
  const auto replayed = uploaded->run(replay, contract::Poison::kFinite);
  REQUIRE(replayed);
  CHECK(*replayed == *expected);
}

TEST_CASE("the device's bits are the host's", "[runtime][cuda][gpu]") {
  auto device = gpu();
  if (!device) BROACH_SKIP(device.error().message);
  const test::TempDir dir;
  auto on_gpu = Runtime::create(test::options_in(dir, "cuda"));
  auto on_host = Runtime::create(test::options_in(dir));
  REQUIRE(on_gpu);
  REQUIRE(on_host);
  std::vector<contract::window_rows::CaseSpec> cases = contract::window_rows::ragged_decodes();
  cases.push_back(contract::window_rows::gemma_decode(3, contract::window_rows::CaseSize::kCut));
  for (const contract::window_rows::CaseSpec& each : cases) {
    INFO(each.name);
    const auto gpu_run = contract::window_rows::run_case(*on_gpu, *on_gpu->state().device, each);
    if (!gpu_run && gpu_run.error().code == ErrorCode::kUnsupported) continue;
    REQUIRE(gpu_run);
    const auto host_run = contract::window_rows::run_case(*on_host, *on_host->state().device, each);
    REQUIRE(host_run);
    CHECK(gpu_run->range.passed());
    CHECK(gpu_run->out == host_run->out);
  }
}

TEST_CASE("bytes that are no binary, and a binary for another chip, are refused with versions",
          "[runtime][cuda][gpu]") {
  auto device = gpu();
  if (!device) BROACH_SKIP(device.error().message);
  const std::vector<std::string> names{"part"};
  const std::vector<std::byte> garbage(4096, std::byte{0x5a});
  const auto refused = (*device)->load(garbage, names);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::kDriver);
  CHECK(refused.error().message.find((*device)->driver()) != std::string::npos);

  const char* elsewhere = (*device)->target().name == "sm_80" ? "sm_90a" : "sm_80";
  const auto target = specializer::parse_target(elsewhere);
  REQUIRE(target);
  const auto plan = specializer::plan(test::small_shape(), *target);
  REQUIRE(plan);
  const test::TempDir dir;
  auto forge = runtime::open_forge(test::options_in(dir));
  auto foreign = forge.obtain(*plan, specializer::OnMiss::kCompile);
  REQUIRE(foreign);
  // A driver that loads lazily looks at the code when a function of it is asked for.
  std::vector<std::string> functions;
  for (const auto& entry : plan->entries) functions.push_back(entry.function);
  const auto not_ours = (*device)->load(foreign->object->payload, functions);
  REQUIRE_FALSE(not_ours);
  CHECK(not_ours.error().code == ErrorCode::kDriver);
  const auto by_target = runtime::load_plan(forge, **device, *plan, specializer::OnMiss::kCompile);
  REQUIRE_FALSE(by_target);
  CHECK(by_target.error().message.find(elsewhere) != std::string::npos);
}

TEST_CASE("an engine's own context and a thread without one both launch", "[runtime][cuda][gpu]") {
  auto device = gpu();
  if (!device) BROACH_SKIP(device.error().message);
  const test::TempDir dir;
  auto runtime = Runtime::create(test::options_in(dir, "cuda"));
  REQUIRE(runtime);
  const auto gemma = contract::window_rows::gemma_decode(1, contract::window_rows::CaseSize::kFull);
  const auto without = contract::window_rows::run_case(*runtime, *runtime->state().device, gemma);
  REQUIRE(without);
  const test::PrimaryContext engine;
  REQUIRE(engine.ok());
  const auto with = contract::window_rows::run_case(*runtime, *runtime->state().device, gemma);
  REQUIRE(with);
  CHECK(with->out == without->out);
}

}  // namespace broach
