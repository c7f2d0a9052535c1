#include "broach/runtime.hpp"

#include <algorithm>
#include <future>
#include <thread>
#include <vector>

#include "runtime/load_plan.hpp"
#include "runtime/window_rows/operators.hpp"
#include "specializer/plan.hpp"
#include "specializer/window_rows/shape.hpp"
#include "tests/runtime/fixture.hpp"
#include "tests/runtime/proxy_device.hpp"
#include "tests/support/catch.hpp"
#include "tools/contract/window_rows/launch.hpp"
#include "tools/contract/window_rows/run.hpp"

namespace broach {
namespace {

using test::options_in;
using test::small_shape;
using test::state_on;

std::shared_ptr<test::ProxyDevice> host_proxy() {
  auto host = runtime::open_device("host");
  REQUIRE(host);
  return std::make_shared<test::ProxyDevice>(*host);
}

/// The state behind the operator of a shape, or null.
const runtime::Operator* known(Runtime::State& state, const WindowRowsShape& shape) {
  const auto* found = state.operators.find(specializer::shape_of(shape));
  return found == nullptr ? nullptr : found->get();
}

}  // namespace

TEST_CASE("a decode on the host lies in float64's range", "[runtime]") {
  const test::TempDir dir;
  auto runtime = Runtime::create(options_in(dir));
  REQUIRE(runtime);
  CHECK(runtime->target_name().starts_with("host-"));
  const auto cases = contract::window_rows::ragged_decodes();
  REQUIRE_FALSE(cases.empty());
  const auto report =
      contract::window_rows::run_case(*runtime, *runtime->state().device, cases.front());
  REQUIRE(report);
  CHECK(report->range.passed());
  CHECK(report->range.pinned > 0);
}

TEST_CASE("options made by hand have the documented defaults", "[runtime]") {
  Options options;  // No variable is read: no cache directory, and compilers from the usual PATH.
  options.device = "host";
  options.notice = [](std::string_view) {};
  auto runtime = Runtime::create(options);
  REQUIRE(runtime);
  const auto made = window_rows_decode(*runtime, small_shape());
  if (!made) FAIL(made.error().message + "\n" + made.error().detail);
  CHECK(made->info().compiled);
  CHECK(made->info().layer == "memory");
}

TEST_CASE("a shape has one operator, however it is spelled", "[runtime]") {
  const test::TempDir dir;
  auto runtime = Runtime::create(options_in(dir));
  REQUIRE(runtime);
  WindowRowsShape named = small_shape();
  named.arith = Arith::kTile64Ex2;
  REQUIRE(window_rows_decode(*runtime, named));
  WindowRowsShape by_default = named;
  by_default.arith = Arith::kDefault;
  auto again = window_rows_decode(*runtime, by_default);
  REQUIRE(again);
  CHECK(again->shape() == named);
  const auto* state = known(runtime->state(), named);
  REQUIRE(state != nullptr);
  CHECK(known(runtime->state(), by_default) == state);
  CHECK(specializer::shape_of(named) == state->shape);
}

TEST_CASE("an operator outlives its runtime", "[runtime]") {
  const test::TempDir dir;
  std::optional<WindowRowsDecode> op;
  {
    auto runtime = Runtime::create(options_in(dir));
    REQUIRE(runtime);
    auto made = window_rows_decode(*runtime, small_shape());
    REQUIRE(made);
    op = *made;
  }
  CHECK(op->workspace_bytes(1, 1, 0) == 2 * 66 * sizeof(float));
  WindowRowsDecodeArgs args;
  args.cache.kv_heads = args.cache.slots = args.cache.length = 1;
  args.attention.rows = -1;
  CHECK_FALSE(op->launch(args, nullptr));
}

TEST_CASE("first use `never` refuses a cold shape by name and serves a warm one", "[runtime]") {
  const test::TempDir dir;
  Options strict = options_in(dir);
  strict.first_use = FirstUse::kNever;
  auto cold = Runtime::create(strict);
  REQUIRE(cold);
  const auto refused = window_rows_decode(*cold, small_shape());
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::kNotWarmed);
  CHECK(refused.error().message.find("head_dim=64") != std::string::npos);

  auto warming = Runtime::create(options_in(dir));
  REQUIRE(warming);
  REQUIRE(window_rows_decode(*warming, small_shape()));
  CHECK(window_rows_decode(*cold, small_shape()));
  auto warm = Runtime::create(strict);
  REQUIRE(warm);
  CHECK(window_rows_decode(*warm, small_shape()));
}

TEST_CASE("a shape that cannot be served is refused by field and value", "[runtime]") {
  const test::TempDir dir;
  auto runtime = Runtime::create(options_in(dir));
  REQUIRE(runtime);
  WindowRowsShape shape = small_shape();
  shape.gqa_ratio = 33;
  const auto refused = window_rows_decode(*runtime, shape);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().message.find("gqa_ratio") != std::string::npos);
  CHECK(refused.error().message.find("33") != std::string::npos);
}

TEST_CASE("a device that does not exist is refused by name", "[runtime]") {
  const test::TempDir dir;
  for (const char* name : {"tpu", "cuda:", "cuda:x", "cuda:99999999999", "host:1"}) {
    const auto runtime = Runtime::create(options_in(dir, name));
    REQUIRE_FALSE(runtime);
    CHECK(runtime.error().code == ErrorCode::kInvalidArgument);
    CHECK(runtime.error().message.find(name) != std::string::npos);
  }
}

TEST_CASE("while the stream captures a loaded shape is served and a new one refused", "[runtime]") {
  const test::TempDir dir;
  const auto device = host_proxy();
  const auto state = state_on(device, dir);
  device->captures = true;
  WindowRowsShape named = small_shape();
  named.arith = Arith::kTile64Ex2;  // What a default is on the host.
  const auto refused = runtime::window_rows_decode(*state, named);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::kCapturing);
  CHECK(refused.error().message.find("head_dim=64") != std::string::npos);
  CHECK(device->loads == 0);

  device->captures = false;
  REQUIRE(runtime::window_rows_decode(*state, named));
  device->captures = true;
  CHECK(runtime::window_rows_decode(*state, named));
  WindowRowsShape by_default = named;
  by_default.arith = Arith::kDefault;
  CHECK(runtime::window_rows_decode(*state, by_default, nullptr));
  CHECK(device->loads == 1);
}

TEST_CASE("threads that ask for one cold shape load it once", "[runtime]") {
  const test::TempDir dir;
  const auto device = host_proxy();
  const auto state = state_on(device, dir);
  std::vector<std::thread> threads;
  std::atomic<int> served{0};
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      if (runtime::window_rows_decode(*state, small_shape(), nullptr)) ++served;
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(served == 8);
  CHECK(device->loads == 1);
}

TEST_CASE("background serves a cold shape by the generic kernel, then promotes it to the same bits",
          "[runtime]") {
  const test::TempDir dir;
  const auto device = host_proxy();
  std::promise<void> gate;
  device->before_load = [&, opened = gate.get_future().share()](int number) {
    if (number == 2) opened.wait();
  };
  const auto state = state_on(device, dir, FirstUse::kBackground);
  const auto recipe = contract::window_rows::ragged_decodes().front().recipe;
  auto problem = contract::window_rows::make_problem(recipe);
  REQUIRE(problem);
  auto made = runtime::window_rows_decode(*state, problem->shape, nullptr);
  REQUIRE(made);
  const WindowRowsDecode op = *made;
  problem->shape = op.shape();
  const auto* op_state = known(*state, op.shape());
  REQUIRE(op_state != nullptr);
  CHECK(op_state->serving == op_state->first.launch.get());
  CHECK(op.info().generic);
  CHECK(op.info().key == op_state->first.key.hex());

  auto uploaded = contract::window_rows::DeviceProblem::upload(*device, *problem);
  REQUIRE(uploaded);
  const auto decoder = contract::window_rows::decoder_of(op);
  const auto generic = uploaded->run(decoder, contract::Poison::kNan);
  REQUIRE(generic);
  gate.set_value();
  state->background.drain();
  CHECK(op_state->serving == op_state->promoted.launch.get());
  CHECK(op_state->promoted.key != op_state->first.key);
  CHECK_FALSE(op.info().generic);
  CHECK(op.info().key == op_state->promoted.key.hex());
  CHECK(op.info().limits.size() == op_state->promoted.limits.size());
  const auto specialised = uploaded->run(decoder, contract::Poison::kFinite);
  REQUIRE(specialised);
  CHECK(*specialised == *generic);
  CHECK(device->loads == 2);

  // What is on disk is served at once.
  const auto warm_device = host_proxy();
  const auto warm = state_on(warm_device, dir, FirstUse::kBackground);
  REQUIRE(runtime::window_rows_decode(*warm, problem->shape, nullptr));
  warm->background.drain();
  CHECK(warm_device->loads == 1);
}

TEST_CASE("a promotion that fails is told, and the generic kernel goes on", "[runtime]") {
  const test::TempDir dir;
  const auto device = host_proxy();
  device->before_load = [&](int number) {
    if (number >= 2) device->refuse_loads = 1;
  };
  Options options = options_in(dir);
  options.first_use = FirstUse::kBackground;
  std::vector<std::string> lines;
  options.notice = [&](std::string_view line) { lines.emplace_back(line); };
  Runtime::State state(options, device, runtime::open_forge(options_in(dir)));
  auto op = runtime::window_rows_decode(state, small_shape(), nullptr);
  REQUIRE(op);
  state.background.drain();
  const auto* op_state = known(state, small_shape());
  REQUIRE(op_state != nullptr);
  CHECK(op_state->serving == op_state->first.launch.get());
  REQUIRE(lines.size() == 1);
  CHECK(lines[0].find("goes on serving") != std::string::npos);
}

TEST_CASE("a cached binary that the driver refuses is set aside and compiled once more",
          "[runtime][load_plan]") {
  const test::TempDir dir;
  const auto device = host_proxy();
  const auto plan = specializer::plan(small_shape(), device->target());
  REQUIRE(plan);
  {
    auto forge = runtime::open_forge(options_in(dir));
    REQUIRE(runtime::load_plan(forge, *device, *plan, specializer::OnMiss::kCompile));
  }
  auto forge = runtime::open_forge(options_in(dir));
  device->loads = 0;
  device->refuse_loads = 1;
  auto loaded = runtime::load_plan(forge, *device, *plan, specializer::OnMiss::kCompile);
  REQUIRE(loaded);
  CHECK(loaded->artifact.compiled);
  CHECK(device->loads == 2);
  const auto set_aside = forge.cache().quarantine();
  REQUIRE(set_aside);
  CHECK(set_aside->size() == 1);

  // Refused again and again: reported with the versions, not tried for ever.
  device->loads = 0;
  device->refuse_loads = 100;
  const auto refused = runtime::load_plan(forge, *device, *plan, specializer::OnMiss::kCompile);
  REQUIRE_FALSE(refused);
  CHECK(device->loads == 2);
  CHECK(refused.error().code == ErrorCode::kDriver);
  CHECK(refused.error().message.find(loaded->artifact.object->key.key.hex()) != std::string::npos);
  CHECK(refused.error().message.find(loaded->artifact.object->provenance.toolkit) !=
        std::string::npos);
}

TEST_CASE("what a first use learns of the device is written down behind it", "[runtime]") {
  const test::TempDir dir;
  const auto state = state_on(host_proxy(), dir);
  const auto op = runtime::window_rows_decode(*state, small_shape(), nullptr);
  REQUIRE(op);
  state->background.drain();
  const auto recorded = state->forge.cache().device_limits(known(*state, op->shape())->first.key);
  REQUIRE(recorded);
  CHECK(recorded->size() == 2);  // chunk256's part and merge.
}

TEST_CASE("a plan for another target is not tried on the device", "[runtime][load_plan]") {
  const test::TempDir dir;
  const auto device = host_proxy();
  const auto target = specializer::parse_target("sm_90a");
  REQUIRE(target);
  const auto plan = specializer::plan(small_shape(), *target);
  REQUIRE(plan);
  auto forge = runtime::open_forge(options_in(dir));
  const auto refused = runtime::load_plan(forge, *device, *plan, specializer::OnMiss::kCompile);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().message.find("a plan for sm_90a cannot be loaded on") == 0);
  CHECK(device->loads == 0);
}

TEST_CASE("the live device's limits are recorded beside the binary's", "[runtime][load_plan]") {
  const test::TempDir dir;
  const auto device = host_proxy();
  const auto plan = specializer::plan(small_shape(), device->target());
  REQUIRE(plan);
  auto forge = runtime::open_forge(options_in(dir));
  auto loaded = runtime::load_plan(forge, *device, *plan, specializer::OnMiss::kCompile);
  REQUIRE(loaded);
  const cache::Key key = loaded->artifact.object->key.key;
  CHECK(forge.cache().device_limits(key)->empty());  // Loading waits for no database.
  runtime::record_live_limits(forge.cache(), *device, key, loaded->live);
  const auto recorded = forge.cache().device_limits(key);
  REQUIRE(recorded);
  REQUIRE(recorded->size() == plan->entries.size());
  for (const cache::DeviceLimits& row : *recorded) {
    CHECK(row.device == device->name());
    CHECK(row.driver == device->driver());
    CHECK(std::any_of(plan->entries.begin(), plan->entries.end(),
                      [&](const auto& entry) { return entry.function == row.limits.function; }));
  }
}

}  // namespace broach
