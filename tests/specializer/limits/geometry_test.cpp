#include "specializer/limits/geometry.hpp"

#include <algorithm>
#include <cstring>

#include "kernel_src/broach/launch_geometry.h"
#include "specializer/limits.hpp"
#include "tests/specializer/compile_support.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/kernel_plan.hpp"

namespace broach::specializer {
namespace {

using Sizes = std::vector<std::uint32_t>;

// Kernels of the SDK header, and on a GPU plain ones beside them.
constexpr const char* kSource = R"(
#include "broach/kernel.cuh"
struct Params { float* out; unsigned count; };
struct Shared { float value[256]; };
BROACH_CONSTANT float acme_table[4];
BROACH_VARIABLE unsigned acme_count;

BROACH_KERNEL(acme_scale, 128, Params, broach::NoShared) {
  params.out[thread.index()] = acme_table[thread.index() % 4];
}
BROACH_KERNEL_OF(acme_cube, broach::block(32, 4, 2).dynamic_shared(50000).cluster(2), Params,
                 Shared) {
  float* const dynamic = static_cast<float*>(broach::dynamic_shared(thread));
  dynamic[thread.index()] = shared.value[thread.index()] = static_cast<float>(thread.y());
  broach::sync_block(thread);
  float part[1] = {dynamic[255 - thread.index()] + shared.value[thread.index() ^ 1u]};
  params.out[thread.index()] = broach::sum_tree<32>(thread, part);
  if (thread.index() == 0) broach::atomic_add(&acme_count, 1u);
}
BROACH_KERNEL_OF(acme_open, broach::block(64).dynamic_shared_at_launch(), Params,
                 broach::NoShared) {
  params.out[thread.index()] = static_cast<float*>(broach::dynamic_shared(thread))[params.count];
}
#if !defined(BROACH_HOST)
BROACH_LAUNCH_GEOMETRY(acme_plain, broach::block(16, 8));
extern "C" __global__ void acme_plain(float* out, int count, double factor, char tag) {
  out[threadIdx.x] = static_cast<float>(count * factor + tag);
}
extern "C" __global__ void acme_silent() {}
#endif
)";

Plan plan_of(std::string_view target, std::string source, std::vector<std::string> functions) {
  return test::kernel_plan(*parse_target(target), std::move(source), std::move(functions));
}

/// The binary of a plan; empty where this machine has no compiler for it.
std::vector<std::byte> compiled(const Plan& plan) {
  static Compilers compilers(test::compilers_options());
  if (!compilers.identity(plan.target)) return {};
  auto output = compilers.compile(plan);
  if (!output) FAIL(output.error().message + '\n' + output.error().detail);
  return std::move(output->binary);
}

std::vector<LaunchLimits> limits_of(const Plan& plan, const std::vector<std::byte>& binary) {
  auto rows = read_limits(plan, binary, "");
  if (!rows) FAIL(rows.error().message);
  return *std::move(rows);
}

/// Where in a binary the geometry of a kernel with such a block lies.
std::vector<std::size_t> records_in(const std::vector<std::byte>& binary, unsigned x, unsigned y,
                                    unsigned z) {
  const unsigned start[] = {BROACH_GEOMETRY_MAGIC, BROACH_GEOMETRY_VERSION, x, y, z};
  const auto words = std::as_bytes(std::span(start));
  std::vector<std::size_t> found;
  auto at = binary.begin();
  while ((at = std::search(at, binary.end(), words.begin(), words.end())) != binary.end()) {
    found.push_back(static_cast<std::size_t>(at - binary.begin()));
    ++at;
  }
  return found;
}

/// What the reader says of a kernel whose record has another word at an index.
std::string refusal(const Plan& plan, std::vector<std::byte> binary, std::size_t word,
                    std::uint32_t value) {
  const auto places = records_in(binary, 32, 4, 2);
  REQUIRE_FALSE(places.empty());
  for (const std::size_t at : places) {
    std::memcpy(binary.data() + at + word * sizeof value, &value, sizeof value);
  }
  const auto rows = read_limits(plan, binary, "");
  if (rows) return "read";
  CHECK(rows.error().code == ErrorCode::kDamaged);
  return rows.error().message;
}

}  // namespace

TEST_CASE("a kernel's stated geometry and its parameters are read out of every kind of binary",
          "[specializer][limits][geometry]") {
  const std::string target =
      GENERATE(as<std::string>{}, "sm_80", "sm_90a", "sm_120", "gfx90a", "host");
  CAPTURE(target);
  const Plan plan = plan_of(target, kSource, {"acme_scale", "acme_cube", "acme_open"});
  const auto binary = compiled(plan);
  if (binary.empty()) BROACH_SKIP("no compiler for " + plan.target.name);
  const auto rows = limits_of(plan, binary);
  const LaunchLimits& scale = rows[0];
  CHECK(scale.block_x == 128U);
  CHECK(scale.block_y == 1U);
  CHECK(scale.block_z == 1U);
  CHECK(scale.dynamic_shared == 0U);
  CHECK_FALSE(scale.cluster_x);
  CHECK(scale.launch_bounds == 128U);
  CHECK(scale.parameter_bytes == Sizes{16});
  const LaunchLimits& cube = rows[1];
  CHECK(cube.block_x == 32U);
  CHECK(cube.block_y == 4U);
  CHECK(cube.block_z == 2U);
  CHECK(cube.dynamic_shared == 50000U);
  CHECK(cube.cluster_x == 2U);
  CHECK(cube.cluster_y == 1U);
  CHECK(cube.cluster_z == 1U);
  CHECK(cube.static_shared == 1024U);
  CHECK(cube.launch_bounds == 256U);
  CHECK(cube.parameter_bytes == Sizes{16});
  const LaunchLimits& open = rows[2];
  CHECK(open.block_x == 64U);
  CHECK_FALSE(open.dynamic_shared);
}

TEST_CASE("a plain kernel's geometry stands beside it, and its parameters are told in order",
          "[specializer][limits][geometry]") {
  const std::string target = GENERATE(as<std::string>{}, "sm_90a", "gfx90a");
  CAPTURE(target);
  const Plan plan = plan_of(target, kSource, {"acme_plain", "acme_silent"});
  const auto binary = compiled(plan);
  if (binary.empty()) BROACH_SKIP("no compiler for " + plan.target.name);
  const auto rows = limits_of(plan, binary);
  CHECK(rows[0].block_x == 16U);
  CHECK(rows[0].block_y == 8U);
  CHECK(rows[0].block_z == 1U);
  CHECK(rows[0].parameter_bytes == Sizes{8, 4, 8, 1});
  CHECK_FALSE(rows[1].block_x);
  CHECK_FALSE(rows[1].dynamic_shared);
  CHECK(rows[1].parameter_bytes == Sizes{});
}

TEST_CASE("tens of kilobytes of parameters are told byte by byte",
          "[specializer][limits][geometry]") {
  const Plan plan = plan_of("sm_90a", R"(
struct alignas(64) Map { char bytes[128]; };
struct Big { char bytes[20001]; };
struct Large { char bytes[5000]; };
extern "C" __global__ void many(const __grid_constant__ Big big, float* out,
                                const __grid_constant__ Large large) {
  out[threadIdx.x] = big.bytes[threadIdx.x] + large.bytes[threadIdx.x];
}
extern "C" __global__ void mapped(int rows, const __grid_constant__ Map map, float* out) {
  out[threadIdx.x] = map.bytes[threadIdx.x] + rows;
}
)",
                            {"many", "mapped"});
  const auto binary = compiled(plan);
  if (binary.empty()) BROACH_SKIP("no compiler for " + plan.target.name);
  const auto rows = limits_of(plan, binary);
  CHECK(rows[0].parameter_bytes == Sizes{20001, 8, 5000});
  CHECK(rows[1].parameter_bytes == Sizes{4, 128, 8});
}

TEST_CASE(
    "what a cubin's code was compiled for is stated without a record, and none contradicts it",
    "[specializer][limits][geometry]") {
  const std::string kernel = R"(
#include "broach/kernel.cuh"
extern "C" __global__ void __cluster_dims__(2, 1, 1) clustered(float* out) { *out = 1; }
extern "C" __global__ void __block_size__((16, 4, 2)) sized(float* out) { *out = 1; }
)";
  Plan plan = plan_of("sm_90a", kernel, {"clustered", "sized"});
  const auto binary = compiled(plan);
  if (binary.empty()) BROACH_SKIP("no compiler for " + plan.target.name);
  const auto rows = limits_of(plan, binary);
  CHECK(rows[0].cluster_x == 2U);
  CHECK(rows[0].cluster_z == 1U);
  CHECK_FALSE(rows[0].block_x);
  CHECK(rows[1].block_x == 16U);
  CHECK(rows[1].block_y == 4U);
  CHECK(rows[1].block_z == 2U);
  CHECK_FALSE(rows[1].cluster_x);

  plan = plan_of("sm_90a", kernel + "BROACH_LAUNCH_GEOMETRY(sized, broach::block(16, 2, 4));\n",
                 {"sized"});
  const auto other = read_limits(plan, compiled(plan), "");
  REQUIRE_FALSE(other);
  CHECK(other.error().message ==
        "cubin: \"broach_geometry_sized\" states a block of 16 x 2 x 4 threads; the code was "
        "compiled for another");
}

TEST_CASE("a damaged geometry is refused with its name and what it says",
          "[specializer][limits][geometry]") {
  const std::string target = GENERATE(as<std::string>{}, "sm_90a", "gfx90a", "host");
  CAPTURE(target);
  const Plan plan = plan_of(target, kSource, {"acme_cube"});
  const auto binary = compiled(plan);
  if (binary.empty()) BROACH_SKIP("no compiler for " + plan.target.name);
  const auto said = [&](std::size_t word, std::uint32_t value) {
    return refusal(plan, binary, word, value);
  };
  CHECK(said(0, BROACH_GEOMETRY_MAGIC) == "read");
  CHECK(test::contains(said(0, 7), "\"broach_geometry_acme_cube\" has magic 0x7 and version 1"));
  CHECK(test::contains(said(1, 2), "version 2; this library reads 0x6d6f6567 and 1"));
  CHECK(test::contains(said(2, 0), "states a block of 0 x 4 x 2 threads; each is 1 to 1024"));
  CHECK(test::contains(said(4, 1025), "states a block of 32 x 4 x 1025 threads"));
  CHECK(test::contains(said(7, 0), "states a cluster of 2 x 0 x 1 blocks; each is 1 to 16"));
  CHECK(test::contains(said(6, 0xffffffff), "states a cluster of 4294967295 x 1 x 1 blocks"));
  CHECK(test::contains(said(9, 1), "has something in its reserved words"));
  // A record that was cut short.
  LaunchLimits limits;
  limits.function = "acme_cube";
  const auto fault = take_geometry(std::vector<std::byte>(44), limits);
  CHECK(fault == "\"broach_geometry_acme_cube\" has 44 bytes; the record has 48");
}

}  // namespace broach::specializer
