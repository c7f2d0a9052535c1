#include "runtime/launch_checks.hpp"

#include <utility>

#include "tests/runtime/allocation_count.hpp"
#include "tests/support/catch.hpp"

namespace broach::runtime {
namespace {

specializer::Target chip() {
  specializer::Target target;
  target.name = "sm_90a";
  target.vendor = specializer::Vendor::kNvidia;
  target.max_shared_bytes = 232448;
  target.registers_per_block = 65536;
  return target;
}

LaunchLimits limits(std::uint32_t registers) {
  LaunchLimits made;
  made.function = "part";
  made.registers = registers;
  return made;
}

std::string refusal(const specializer::KernelEntry& entry, const LaunchLimits& with,
                    const specializer::Target& target = chip()) {
  const auto checked = check_launch(entry, with, target);
  if (checked) return {};
  CHECK(checked.error().code == ErrorCode::kLimitExceeded);
  return checked.error().message;
}

}  // namespace

TEST_CASE("too many registers are refused with the product and the file", "[runtime][launch]") {
  CHECK(refusal({"part", 512, 0}, limits(156)) ==
        "part cannot launch on sm_90a: 156 registers x 512 threads = 79,872 exceed the chip's "
        "65,536");
  CHECK(refusal({"part", 512, 0}, limits(128)).empty());
}

TEST_CASE("registers are counted as the chip hands them out", "[runtime][launch]") {
  CHECK(refusal({"part", 1000, 0}, limits(65)) ==
        "part cannot launch on sm_90a: 65 registers x 1000 threads, allocated as 72 x 1024 = "
        "73,728, exceed the chip's 65,536");
  CHECK(refusal({"part", 1000, 0}, limits(64)).empty());
}

TEST_CASE("an unstated limit or register file is not checked", "[runtime][launch]") {
  CHECK(refusal({"part", 512, 0}, LaunchLimits{}).empty());
  specializer::Target target = chip();
  target.registers_per_block = 0;
  CHECK(refusal({"part", 512, 0}, limits(255), target).empty());
}

TEST_CASE("too many threads name whose limit it is", "[runtime][launch]") {
  CHECK(refusal({"part", 1025, 0}, limits(16)) ==
        "part cannot launch on sm_90a: 1,025 threads a block exceed the chip's 1,024");
  LaunchLimits bounded = limits(16);
  bounded.max_threads = 384;
  CHECK(refusal({"part", 385, 0}, bounded) ==
        "part cannot launch on sm_90a: 385 threads a block exceed the binary's maximum of 384");
  CHECK(refusal({"part", 384, 0}, bounded).empty());
  bounded.launch_bounds = 256;
  CHECK(refusal({"part", 257, 0}, bounded) ==
        "part cannot launch on sm_90a: 257 threads a block exceed the launch bound promised to the "
        "compiler, 256");
}

TEST_CASE("shared memory is static plus dynamic against the chip's limit", "[runtime][launch]") {
  LaunchLimits shared = limits(32);
  shared.static_shared = 40000;
  CHECK(refusal({"part", 256, 200000}, shared) ==
        "part cannot launch on sm_90a: 40,000 static + 200,000 dynamic bytes of shared memory = "
        "240,000 exceed the chip's limit of 232,448 a block");
  CHECK(refusal({"part", 256, 232448 - 40000}, shared).empty());
  shared.max_dynamic_shared = 1000;
  CHECK(refusal({"part", 256, 1001}, shared) ==
        "part cannot launch on sm_90a: 1,001 bytes of dynamic shared memory exceed the binary's "
        "1,000");
}

TEST_CASE("an entry without a block is held by the block that the binary states",
          "[runtime][launch]") {
  LaunchLimits stated = limits(156);
  CHECK(refusal({"part", 0, 0}, stated).empty());
  stated.block_x = 128;
  stated.block_y = 4;
  stated.block_z = 1;
  CHECK(refusal({"part", 0, 0}, stated).find("156 registers x 512 threads") != std::string::npos);
  stated.registers = 32;
  CHECK(refusal({"part", 0, 0}, stated).empty());
  stated.dynamic_shared = 232449;
  CHECK(refusal({"part", 0, 0}, stated).find("232,449 dynamic bytes") != std::string::npos);
}

namespace {

/// A kernel of everything: a block of 32 x 4 x 2, a cluster of 2, three parameters.
LaunchLimits full_limits() {
  LaunchLimits made = limits(40);
  made.static_shared = 1024;
  made.block_x = 32;
  made.block_y = 4;
  made.block_z = 2;
  made.dynamic_shared = 98304;
  made.cluster_x = 2;
  made.cluster_y = made.cluster_z = 1;
  made.parameter_bytes = {8, 4, 128};
  return made;
}

constexpr int kValue = 0;
constexpr const void* kArguments[] = {&kValue, &kValue, &kValue};
constexpr std::uint32_t kSizes[] = {8, 4, 128};

LaunchConfig full_launch() {
  LaunchConfig config;
  config.grid[0] = 8;
  config.grid[1] = 3;
  config.arguments = kArguments;
  take_stated_geometry(config, full_limits());
  return config;
}

struct Refused {
  ErrorCode code = ErrorCode::kInternal;
  std::string words;  ///< Behind "part cannot launch on <target>: ".
};

template <class Spoil>
Refused refused(Spoil spoil, const specializer::Target& target = chip()) {
  LaunchConfig config = full_launch();
  LaunchLimits with = full_limits();
  spoil(config, with);
  const auto checked = check_launch(config, with, target, kSizes);
  if (checked) return {};
  const std::string prefix = "part cannot launch on " + target.name + ": ";
  CHECK(checked.error().message.find(prefix) == 0);
  return {checked.error().code, checked.error().message.substr(prefix.size())};
}

}  // namespace

TEST_CASE("a launch takes what the kernel states and leaves what the caller said",
          "[runtime][launch]") {
  const LaunchConfig taken = full_launch();
  CHECK(taken.block[0] == 32);
  CHECK(taken.block[1] == 4);
  CHECK(taken.block[2] == 2);
  CHECK(taken.dynamic_shared_bytes == 98304);
  CHECK(taken.cluster[0] == 2);
  CHECK(taken.cluster[2] == 1);
  LaunchConfig said;
  said.block[0] = 7;
  said.dynamic_shared_bytes = 5;
  said.cluster[0] = 3;
  take_stated_geometry(said, full_limits());
  CHECK(said.block[0] == 7);
  CHECK(said.block[1] == 1);
  CHECK(said.dynamic_shared_bytes == 5);
  CHECK(said.cluster[0] == 3);
}

TEST_CASE("a launch that fits passes without a word or an allocation", "[runtime][launch]") {
  const LaunchConfig config = full_launch();
  const LaunchLimits with = full_limits();
  const specializer::Target target = chip();
  const std::uint64_t before = test::allocation_count();
  const bool fits = check_launch(config, with, target, kSizes).ok();
  CHECK(test::allocation_count() == before);
  CHECK(fits);
  CHECK(check_launch(config, with, target));  // The sizes are not known: the number is.
}

TEST_CASE("a grid, a block and a cluster beyond the chip name dimension, value and bound",
          "[runtime][launch]") {
  const auto grid = refused([](LaunchConfig& c, LaunchLimits&) { c.grid[1] = 65536; });
  CHECK(grid.code == ErrorCode::kLimitExceeded);
  CHECK(grid.words ==
        "a grid of 8 x 65536 x 1 blocks has 65,536 blocks along y; the chip's bound is 65,535");
  CHECK(refused([](LaunchConfig& c, LaunchLimits&) { c.grid[2] = 0; }).words ==
        "a grid of 8 x 3 x 0 blocks is empty");
  const auto block = refused([](LaunchConfig& c, LaunchLimits& l) {
    l.block_x.reset();
    l.block_z.reset();
    c.block[0] = 1;
    c.block[2] = 65;
  });
  CHECK(block.code == ErrorCode::kLimitExceeded);
  CHECK(block.words == "a block of 1 x 4 x 65 threads exceeds the chip's 64 along z");
  const auto threads = refused([](LaunchConfig& c, LaunchLimits& l) {
    l.block_x.reset();
    l.registers = 16;
    c.block[0] = 256;
  });
  CHECK(threads.words == "2,048 threads a block exceed the chip's 1,024");
  const auto cluster = refused([](LaunchConfig& c, LaunchLimits& l) {
    l.cluster_x.reset();
    c.grid[0] = 32;
    c.cluster[0] = 32;
  });
  CHECK(cluster.code == ErrorCode::kLimitExceeded);
  CHECK(cluster.words == "a cluster of 32 x 1 x 1 blocks exceeds the chip's 16");
  const auto uneven = refused([](LaunchConfig& c, LaunchLimits&) { c.grid[0] = 9; });
  CHECK(uneven.code == ErrorCode::kInvalidArgument);
  CHECK(uneven.words == "a grid of 9 x 3 x 1 blocks is no multiple of the cluster's 2 x 1 x 1");
}

TEST_CASE("AMD counts a grid in threads, and no chip of it has clusters", "[runtime][launch]") {
  specializer::Target target = chip();
  target.name = "gfx90a";
  target.vendor = specializer::Vendor::kAmd;
  const auto clusters = refused([](LaunchConfig&, LaunchLimits&) {}, target);
  CHECK(clusters.code == ErrorCode::kUnsupported);
  CHECK(clusters.words.find("a cluster of 2 x 1 x 1 blocks; NVIDIA's chips have") == 0);
  const auto grid = refused(
      [](LaunchConfig& c, LaunchLimits& l) {
        l.cluster_x.reset();
        l.cluster_y.reset();
        l.cluster_z.reset();
        c.cluster[0] = c.cluster[1] = c.cluster[2] = 0;
        c.grid[0] = 1U << 27;
      },
      target);
  CHECK(grid.words ==
        "a grid of 134217728 x 3 x 1 blocks has 4,294,967,296 threads along x; the chip's bound is "
        "4,294,967,295");
}

TEST_CASE("a launch that differs from what the kernel states names both", "[runtime][launch]") {
  const auto block =
      refused([](LaunchConfig& c, LaunchLimits&) { std::swap(c.block[1], c.block[2]); });
  CHECK(block.code == ErrorCode::kInvalidArgument);
  CHECK(block.words ==
        "a block of 32 x 2 x 4 threads is not the 32 x 4 x 2 that the kernel states");
  CHECK(refused([](LaunchConfig& c, LaunchLimits&) { c.dynamic_shared_bytes = 98303; }).words ==
        "98,303 bytes of dynamic shared memory are not the 98,304 that the kernel states");
  CHECK(refused([](LaunchConfig& c, LaunchLimits&) { c.cluster[0] = 4; }).words ==
        "a cluster of 4 x 1 x 1 blocks is not the 2 x 1 x 1 that the kernel states");
  CHECK(refused([](LaunchConfig& c, LaunchLimits&) {
          c.cluster[0] = c.cluster[1] = c.cluster[2] = 0;
        }).words == "no cluster is not the 2 x 1 x 1 that the kernel states");
}

TEST_CASE("arguments are held against the parameters, one by one", "[runtime][launch]") {
  CHECK(refused([](LaunchConfig& c, LaunchLimits&) { c.arguments = c.arguments.first(2); }).words ==
        "2 arguments for 3 parameters of 8, 4 and 128 bytes");
  CHECK(refused([](LaunchConfig&, LaunchLimits& l) {
          l.parameter_bytes = {8, 8, 128};
        }).words == "argument 1 has 4 bytes; the parameter has 8");
  CHECK(refused([](LaunchConfig&, LaunchLimits& l) { l.parameter_bytes.emplace(); }).words ==
        "3 arguments for a function without parameters");
  const auto as_struct = [](std::size_t bytes) {
    return [bytes](LaunchConfig& c, LaunchLimits& l) {
      l.parameter_bytes = {16};
      c.params = &kValue;
      c.params_bytes = bytes;
    };
  };
  CHECK(refused(as_struct(16)).words.empty());
  CHECK(refused(as_struct(12)).words == "a struct of 12 bytes for 1 parameter of 16 bytes");
  // What the binary does not state is not checked.
  CHECK(refused([](LaunchConfig& c, LaunchLimits& l) {
          l.parameter_bytes.reset();
          c.arguments = {};
        }).words.empty());
}

}  // namespace broach::runtime
