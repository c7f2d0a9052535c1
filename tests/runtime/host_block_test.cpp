#include "runtime/host/block.hpp"

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "common/platform.cuh"
#include "common/warp.cuh"
#include "tests/support/catch.hpp"

// Kernels of this file run through the entries that BROACH_GLOBAL makes, without a loader.
namespace {

struct Out {
  float* out;
  int mode;
  int reserved;
};

struct Exchange {
  float value[64];
};

}  // namespace

// Each thread reads what another warp's thread wrote before the barrier.
BROACH_GLOBAL(test_reverse, 64, Out, Exchange) {
  const unsigned i = thread.index();
  shared.value[i] = static_cast<float>(i);
  broach::sync_block(thread);
  params.out[i] = shared.value[63 - i];
}

BROACH_GLOBAL(test_warp, 64, Out, broach::NoShared) {
  const unsigned i = thread.index();
  const auto mine = static_cast<float>(i);
  float parts[4] = {mine, 2 * mine, 3 * mine, 4 * mine};
  float sum = broach::sum_tree<16>(thread, parts);
  sum += 1000.0F * broach::shuffle_xor(thread, mine, 5);
  sum += broach::any(thread, i == 40) ? 0.5F : 0.0F;
  sum += broach::all(thread, i < 32) ? 0.25F : 0.0F;
  params.out[i] = sum + 100000.0F * broach::max_warp(thread, mine);
}

BROACH_GLOBAL(test_faults, 64, Out, Exchange) {
  const unsigned i = thread.index();
  switch (params.mode) {
    case 0:  // One thread ends where the others wait.
      if (i != 5) broach::sync_block(thread);
      break;
    case 1:  // Half a warp votes, the other half shuffles.
      if (i % 32 < 16) {
        params.out[i] = broach::any(thread, true) ? 1.0F : 0.0F;
      } else {
        params.out[i] = broach::shuffle(thread, 1.0F, 0);
      }
      break;
    case 2:  // A warp waits for the block, and one of its lanes for the warp.
      if (i == 3) {
        broach::sync_warp(thread);
      } else {
        broach::sync_block(thread);
      }
      break;
    case 3:
      if (i == 33) broach::fail(thread, "a position is past its slot", 77);
      broach::sync_block(thread);
      break;
    case 4:
      thread.host->calls->meet(thread.host, 48, nullptr, nullptr);
      break;
    case 5:
      params.out[i] = shared.value[i];  // Never written.
      break;
    default:
      params.out[i] = 1.0F;
  }
}

namespace broach::runtime::host {
namespace {

Result<void> run(BlockRunner& runner, BroachHostEntry entry, const BroachHostRecord& record,
                 const Out& params) {
  BlockLaunch launch;
  launch.function = "a_kernel";
  launch.entry = entry;
  launch.params = &params;
  launch.block_threads = record.block_threads;
  launch.static_shared_bytes = record.static_shared_bytes;
  const std::uint32_t block[3] = {7, 8, 9};
  return runner.run(launch, block);
}

std::string fault(BlockRunner& runner, int mode) {
  std::array<float, 64> out{};
  const auto ran = run(runner, &broach_host_entry_test_faults, broach_host_record_test_faults,
                       {out.data(), mode, 0});
  return ran ? "" : ran.error().message;
}

TEST_CASE("a block barrier shows every thread the others' shared memory", "[runtime][host_block]") {
  BlockRunner runner;
  std::array<float, 64> out{};
  for (int repeat = 0; repeat < 3; ++repeat) {
    out.fill(-1.0F);
    REQUIRE(run(runner, &broach_host_entry_test_reverse, broach_host_record_test_reverse,
                {out.data(), 0, 0}));
    for (std::size_t i = 0; i < 64; ++i) CHECK(out[i] == static_cast<float>(63 - i));
  }
}

TEST_CASE("the exchanges of a warp are those of a GPU's", "[runtime][host_block]") {
  BlockRunner runner;
  std::array<float, 64> out{};
  REQUIRE(
      run(runner, &broach_host_entry_test_warp, broach_host_record_test_warp, {out.data(), 0, 0}));
  for (unsigned i = 0; i < 64; ++i) {
    const unsigned first = i / 16 * 16;
    const float total = static_cast<float>(16 * first + 120);  // Of the group's thread indices.
    const float factor = static_cast<float>(i % 16 / 4 + 1);   // Four lanes a value.
    const float vote = (i >= 32 ? 0.5F : 0.0F) + (i < 32 ? 0.25F : 0.0F);
    const float most = i < 32 ? 31.0F : 63.0F;
    CHECK(out[i] ==
          total * factor + 1000.0F * static_cast<float>(i ^ 5u) + vote + 100000.0F * most);
  }
}

TEST_CASE("a thread that ends where others wait is an error, not a hang", "[runtime][host_block]") {
  BlockRunner runner;
  CHECK(fault(runner, 0) ==
        "a_kernel, block (7, 8, 9): 63 of 64 threads from thread 0 on wait for the others, but "
        "thread 5 has ended");
  CHECK(fault(runner, 6).empty());  // The runner is whole again.
}

TEST_CASE("lanes that come to different exchanges are named", "[runtime][host_block]") {
  BlockRunner runner;
  CHECK(
      fault(runner, 1) ==
      "a_kernel, block (7, 8, 9), thread 16: comes to another exchange than thread 0 of its group "
      "of 32 waits in");
  CHECK(fault(runner, 2) ==
        "a_kernel, block (7, 8, 9): 63 of 64 threads from thread 0 on wait for the others, but "
        "thread 3 waits in a group of 32");
  CHECK(fault(runner, 4) ==
        "a_kernel, block (7, 8, 9), thread 0: waits in a group of 48 threads; a group is whole "
        "warps of 32 within the block's 64");
  CHECK(fault(runner, 6).empty());
}

TEST_CASE("a kernel's own check ends the launch with its reason", "[runtime][host_block]") {
  BlockRunner runner;
  CHECK(fault(runner, 3) ==
        "a_kernel, block (7, 8, 9), thread 33: a position is past its slot: 77");
}

TEST_CASE("shared memory that was not written reads as NaN", "[runtime][host_block]") {
  BlockRunner runner;
  std::array<float, 64> out{};
  REQUIRE(run(runner, &broach_host_entry_test_faults, broach_host_record_test_faults,
              {out.data(), 5, 0}));
  for (const float value : out) CHECK(value != value);
}

}  // namespace
}  // namespace broach::runtime::host
