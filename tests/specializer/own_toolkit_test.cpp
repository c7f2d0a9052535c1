#include "specializer/own/toolkit_packs.hpp"

#include <filesystem>
#include <fstream>

#include "specializer/options.hpp"
#include "specializer/own/family_files.hpp"
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

/// A plan of one source with the toolkit's pack alone.
Plan plan_of(const Target& target, const SourceFiles& files, std::string main) {
  Plan plan;
  plan.family = "acme.probe";
  plan.target = target;
  plan.shape_json = "{}";
  plan.options = compiler_options(target);
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

  options.hip_include = dir.path() / "chosen";
  const auto chosen = toolkit_pack(Vendor::kAmd, options);
  REQUIRE(chosen->find("hip/hip_fp16.h"));
  CHECK((*chosen->find("hip/hip_fp16.h"))->bytes == "chosen\n");

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
