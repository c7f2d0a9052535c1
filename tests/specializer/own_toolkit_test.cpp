#include "specializer/own/toolkit_packs.hpp"

#include <filesystem>
#include <fstream>

#include "specializer/own/family_files.hpp"
#include "specializer/own/family_options.hpp"
#include "tests/specializer/compile_support.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/temp_dir.hpp"

namespace {

using namespace broach;
using namespace broach::specializer;
using namespace broach::specializer::own;
using namespace broach::test;

namespace fs = std::filesystem;

void write(const fs::path& file, const std::string& bytes) {
  fs::create_directories(file.parent_path());
  std::ofstream(file) << bytes;
}

/// What plain sources use of standard headers, for each compiler.
constexpr const char* kStandard =
    "#include <assert.h>\n#include <cassert>\n#include <cfloat>\n#include <climits>\n"
    "#include <cmath>\n#include <cstddef>\n#include <cstdint>\n#include <cstdio>\n"
    "#include <cstdlib>\n#include <cstring>\n#include <float.h>\n#include <limits.h>\n"
    "#include <math.h>\n#include <stddef.h>\n#include <stdint.h>\n#include <stdio.h>\n"
    "#include <stdlib.h>\n#include <string.h>\n"
    "struct Pair { int a, b; };\n"
    "extern \"C\" GLOBAL void probe(uint32_t* x, float* y, size_t n) {\n"
    "  static_assert(sizeof(std::int64_t) == 8 && sizeof(uintptr_t) == sizeof(void*));\n"
    "  static_assert(INT64_MAX > INT32_MAX && UINT8_MAX == 255 && LONG_MAX > 0);\n"
    "  const std::size_t at = offsetof(Pair, b);\n"
    "  assert(n > 0);\n"
    "  x[0] = static_cast<uint32_t>(INT_MAX) + static_cast<uint32_t>(at);\n"
    "  y[0] = INFINITY + FLT_MAX + NAN + static_cast<float>(M_PI);\n}\n";

/// A plan of one source with the toolkit's pack alone.
Plan plan_of(const Target& target, const SourceFiles& files, std::string main) {
  Plan plan;
  plan.family = "acme.probe";
  plan.target = target;
  plan.shape_json = "{}";
  plan.options = *own::compiler_options(target, {});
  auto sources = close_over_includes("main.cu", std::move(main), target.vendor, files);
  INFO((sources ? "" : sources.error().message));
  REQUIRE(sources);
  plan.sources = *std::move(sources);
  return plan;
}

struct Case {
  const char* name;
  const char* source;
};

constexpr Case kCases[] = {
    {"cuda_fp16.h",
     "#include <cuda_fp16.h>\n"
     "extern \"C\" __global__ void probe(__half2* x) { x[0] = __hfma2(x[0], x[1], x[2]); }\n"},
    {"cuda_bf16.h",
     "#include <cuda_bf16.h>\n"
     "extern \"C\" __global__ void probe(__nv_bfloat16* x, float y) {\n"
     "  x[0] = __float2bfloat16(y);\n}\n"},
    {"mma.h",
     "#include <mma.h>\n"
     "using namespace nvcuda;\n"
     "extern \"C\" __global__ void probe(const __half* a, const __half* b, float* c) {\n"
     "  wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> fa;\n"
     "  wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::col_major> fb;\n"
     "  wmma::fragment<wmma::accumulator, 16, 16, 16, float> fc;\n"
     "  wmma::fill_fragment(fc, 0.0f);\n"
     "  wmma::load_matrix_sync(fa, a, 16);\n"
     "  wmma::load_matrix_sync(fb, b, 16);\n"
     "  wmma::mma_sync(fc, fa, fb, fc);\n"
     "  wmma::store_matrix_sync(c, fc, 16, wmma::mem_row_major);\n}\n"},
    {"cooperative_groups.h",
     "#include <cooperative_groups.h>\n"
     "namespace cg = cooperative_groups;\n"
     "extern \"C\" __global__ void probe(int* x) {\n"
     "  cg::thread_block block = cg::this_thread_block();\n"
     "  cg::tiled_partition<32>(block).sync();\n"
     "  x[block.thread_rank()] = 1;\n}\n"},
    {"cub/block/block_reduce.cuh",
     "#include <cub/block/block_reduce.cuh>\n"
     "extern \"C\" __global__ void probe(int* x) {\n"
     "  using Reduce = cub::BlockReduce<int, 128>;\n"
     "  __shared__ typename Reduce::TempStorage storage;\n"
     "  const int sum = Reduce(storage).Sum(x[threadIdx.x]);\n"
     "  if (threadIdx.x == 0) x[0] = sum;\n}\n"},
    {"cuda/std/type_traits",
     "#include <cuda/std/type_traits>\n"
     "template <class T> __device__ cuda::std::make_unsigned_t<T> as_unsigned(T x) { return x; }\n"
     "extern \"C\" __global__ void probe(int x, unsigned* y) { *y = as_unsigned(x); }\n"},
    {"cub and standard headers",
     "#include <cstdint>\n#include <climits>\n#include <cub/block/block_reduce.cuh>\n"
     "#include <cuda/std/cstdint>\n#include <cmath>\n#include <cstdio>\n"
     "extern \"C\" __global__ void probe(std::uint64_t* x) { x[0] = INT_MAX; }\n"},
    {"cuda_runtime.h",
     "#include <cuda_runtime.h>\n"
     "extern \"C\" __global__ void probe(float4* x) { x[0] = make_float4(1, 2, 3, 4); }\n"},
};

}  // namespace

TEST_CASE("the toolkit's headers compile from memory, with no include path",
          "[specializer][own][toolkit]") {
  const auto options = compilers_options();
  Compilers compilers(options);
  const Target target = *parse_target("sm_90a");
  if (auto who = compilers.identity(target); !who) BROACH_SKIP(who.error().message);
  const auto pack = toolkit_pack(Vendor::kNvidia, options);
  if (auto there = pack->find("cuda_fp16.h"); !there) BROACH_SKIP(there.error().message);
  const FamilyFiles files("acme.probe", {}, {{pack, Vendor::kNvidia}});
  for (const Case& each : kCases) {
    DYNAMIC_SECTION(each.name) {
      const Plan plan = plan_of(target, files, each.source);
      CHECK(plan.sources.size() > 1);
      for (const SourceFile& source : plan.sources) CHECK_FALSE(source.name.starts_with('/'));
      const auto output = compilers.compile(plan);
      INFO((output ? "" : output.error().message + "\n" + output.error().detail));
      REQUIRE(output);
      CHECK(output->binary.size() > 64);
    }
  }
}

TEST_CASE("the stand-ins for standard headers compile for every compiler",
          "[specializer][own][toolkit]") {
  Compilers compilers(compilers_options());
  const FamilyFiles files("acme.probe", {}, {});
  for (const char* name : {"sm_90a", "gfx90a", "host"}) {
    const Target target = *parse_target(name);
    const bool is_host = target.vendor == Vendor::kHost;
    const std::string global = is_host ? "__attribute__((visibility(\"default\")))" : "__global__";
    const auto output =
        compilers.compile(plan_of(target, files, "#define GLOBAL " + global + "\n" + kStandard));
    if (!output && output.error().code == ErrorCode::kCompilerMissing) continue;
    INFO(name << " " << (output ? "" : output.error().message + "\n" + output.error().detail));
    CHECK(output);
  }
}

TEST_CASE("a toolkit's pack lies where an option says, else beside its compiler",
          "[specializer][own][toolkit]") {
  const TempDir dir;
  write(dir.path() / "chosen/hip/hip_fp16.h", "chosen\n");
  write(dir.path() / "rocm/include/hip/hip_fp16.h", "beside\n");
  write(dir.path() / "rocm/include/rocwmma/rocwmma.hpp", "wmma\n");
  write(dir.path() / "rocm/include/stdio.h", "another's\n");
  write(dir.path() / "rocm/lib/libhiprtc.so.6", "");
  CompilersOptions options;
  options.hiprtc = dir.path() / "rocm/lib/libhiprtc.so.6";
  const auto beside = toolkit_pack(Vendor::kAmd, options);
  REQUIRE(beside->find("hip/hip_fp16.h"));
  CHECK((*beside->find("hip/hip_fp16.h"))->bytes == "beside\n");
  CHECK((*beside->find("rocwmma/rocwmma.hpp"))->bytes == "wmma\n");
  CHECK(*beside->find("stdio.h") == nullptr);

  // Families that are loaded at one time share it.
  CHECK(toolkit_pack(Vendor::kAmd, options) == beside);

  options.hip_include = dir.path() / "chosen";
  const auto chosen = toolkit_pack(Vendor::kAmd, options);
  REQUIRE(chosen->find("hip/hip_fp16.h"));
  CHECK((*chosen->find("hip/hip_fp16.h"))->bytes == "chosen\n");
  CHECK(chosen != beside);

  options.hip_include = dir.path() / "nothing";
  const auto absent = toolkit_pack(Vendor::kAmd, options)->find("hip/hip_fp16.h");
  REQUIRE_FALSE(absent);
  CHECK(absent.error().code == ErrorCode::kNotFound);
  CHECK(absent.error().message.find("BROACH_HIP_INCLUDE") != std::string::npos);
  CHECK(absent.error().detail.find((dir.path() / "nothing").string()) != std::string::npos);
  CHECK(vendor_of_toolkit_pack("cuda") == Vendor::kNvidia);
  CHECK(vendor_of_toolkit_pack("hip") == Vendor::kAmd);
  CHECK_FALSE(vendor_of_toolkit_pack("cutlass"));
}
