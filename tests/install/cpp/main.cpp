// A program of someone else's: one decode on the host through the installed C++ interface, after
// which none of the GPU's libraries may be in the process.
#include <broach/runtime.hpp>
#include <broach/version.hpp>
#include <broach/window_rows.hpp>

#include <cstdint>
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

namespace {

constexpr std::uint16_t kOne = 0x3f80;  // 1.0 as bf16.

int fail(const std::string& words) {
  std::fprintf(stderr, "%s\n", words.c_str());
  return 1;
}

int fail(const broach::Error& error) { return fail(error.message + "\n" + error.detail); }

}  // namespace

int main() {
  auto runtime = broach::Runtime::create(broach::Options::from_environment());
  if (!runtime) return fail(runtime.error());
  broach::WindowRowsShape shape;
  shape.head_dim = 64;
  shape.gqa_ratio = 2;
  auto op = broach::window_rows_decode(*runtime, shape);
  if (!op) return fail(op.error());

  alignas(16) std::uint16_t q[2][64], out[2][64], k[1][64], v[1][64];
  for (int d = 0; d < 64; ++d) q[0][d] = q[1][d] = k[0][d] = v[0][d] = kOne;
  const std::int32_t zero = 0;
  broach::WindowRowsDecodeArgs args;
  args.attention.q = q;
  args.cache.k = k;
  args.cache.v = v;
  args.attention.out = out;
  args.positions = args.slots = &zero;
  args.attention.rows = args.cache.kv_heads = args.cache.slots = args.cache.length = 1;
  args.attention.q_head_stride = args.attention.out_head_stride = 64;
  args.workspace_bytes = op->workspace_bytes(1, 1, 1);
  std::vector<float> workspace(args.workspace_bytes / sizeof(float) + 4);
  const auto address = reinterpret_cast<std::uintptr_t>(workspace.data());
  args.workspace = reinterpret_cast<void*>((address + 15) / 16 * 16);
  if (auto launched = op->launch(args, nullptr); !launched) return fail(launched.error());
  for (const auto& head : out) {
    for (const std::uint16_t value : head) {
      if (value != kOne) return fail("one key's output is not its value");
    }
  }

  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    for (const char* library : {"libcuda", "libnvrtc", "libamdhip", "libhiprtc"}) {
      if (line.find(library) != std::string::npos) return fail("opened needlessly: " + line);
    }
  }
  std::printf("broach %s: one decode on %s\n", BROACH_VERSION, runtime->target_name().c_str());
  return 0;
}
