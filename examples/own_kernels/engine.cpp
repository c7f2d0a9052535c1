// One layer of a small engine: a residual + RMS norm and a 4-bit projection of the engine's own,
// then a decode over a sliding window of the library's. Each step is compared with float64.
//
//   engine DIRECTORY     DIRECTORY has the family files; BROACH_... variables as always
//
// Memory is the process's, so the device is the host.

#include <broach/kernel.hpp>
#include <broach/runtime.hpp>
#include <broach/window_rows.hpp>

#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

constexpr std::uint32_t kDim = 1024, kGroup = 64, kHeadDim = 64, kKvHeads = 4, kRatio = 2;
constexpr std::uint32_t kHeads = kKvHeads * kRatio, kQueries = kHeads * kHeadDim;
constexpr std::int32_t kKeys = 200, kWindow = 128;
constexpr float kEpsilon = 1e-6F;

using Bf16 = std::vector<std::uint16_t>;

double widen(std::uint16_t bits) {
  const std::uint32_t word = static_cast<std::uint32_t>(bits) << 16;
  float value = 0;
  std::memcpy(&value, &word, sizeof value);
  return value;
}

std::uint16_t narrow(double value) {
  const auto single = static_cast<float>(value);
  std::uint32_t word = 0;
  std::memcpy(&word, &single, sizeof word);
  return static_cast<std::uint16_t>((word + 0x7fffU + (word >> 16 & 1U)) >> 16);
}

/// Numbers without an order, the same on every machine.
class Numbers {
 public:
  std::uint32_t next() {
    state_ = state_ * 6364136223846793005U + 1442695040888963407U;
    return static_cast<std::uint32_t>(state_ >> 32);
  }
  Bf16 vector(std::size_t count, double scale) {
    Bf16 values(count);
    for (auto& value : values) value = narrow(scale * (next() / 2147483648.0 - 1.0));
    return values;
  }

 private:
  std::uint64_t state_ = 1;
};

/// Kernels take 16-byte aligned pointers, which a vector's storage has here.
static_assert(__STDCPP_DEFAULT_NEW_ALIGNMENT__ >= 16);

/// The largest distance from float64 in units of a bf16's last place (2^-8 of the value, of 1/64
/// for smaller ones).
double worst(const Bf16& found, const std::vector<double>& expected) {
  double most = 0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    const double unit = std::max(std::fabs(expected[i]), 1.0 / 64) / 256;
    const double distance = std::fabs(widen(found[i]) - expected[i]) / unit;
    if (!(distance <= most)) most = distance;  // A NaN too.
  }
  return most;
}

int report(const char* step, double distance, double bytes, double seconds) {
  std::printf("%-9s %.2f units of the last place from float64, %.2f GB/s\n", step, distance,
              bytes / seconds / 1e9);
  return distance <= 1.0 ? 0 : 1;
}

int fail(const broach::Error& error) {
  std::fprintf(stderr, "engine: %s\n%s\n", error.message.c_str(), error.detail.c_str());
  return 2;
}

/// Seconds of the fastest of some calls.
template <class Call>
double timed(Call call) {
  double least = 1e9;
  for (int i = 0; i < 5; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    call();
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
    least = std::min(least, taken.count());
  }
  return least;
}

struct RmsNormParams {
  const std::uint16_t* x;
  std::uint16_t* residual;
  const std::uint16_t* weight;
  std::uint16_t* out;
  float epsilon;
};

struct Gemv4Params {
  const std::uint32_t* weights;
  const std::uint16_t* scales;
  const std::uint16_t* x;
  std::uint16_t* y;
  std::uint32_t rows;
};

class Engine {
 public:
  Engine(broach::Runtime& runtime, std::string directory)
      : runtime_(runtime), directory_(std::move(directory)) {}

  broach::Result<broach::Kernel> kernel(const std::string& file,
                                        std::initializer_list<std::string> values) {
    auto family = broach::KernelFamily::load(directory_ + "/" + file);
    if (!family) return family.error();
    auto shape = family->shape(values);
    if (!shape) return shape.error();
    return runtime_.kernel(*shape);
  }

  int run() {
    auto norm = kernel("rms_norm.family.json", {"dim=" + std::to_string(kDim), "dtype=bf16"});
    if (!norm) return fail(norm.error());
    auto gemv = kernel("gemv4.family.json", {"depth=" + std::to_string(kDim),
                                             "group=" + std::to_string(kGroup), "dtype=bf16"});
    if (!gemv) return fail(gemv.error());
    broach::WindowRowsShape shape;
    shape.head_dim = kHeadDim;
    shape.gqa_ratio = kRatio;
    shape.window = kWindow;
    shape.p32 = broach::Switch::kOn;
    auto decode = broach::window_rows_decode(runtime_, shape);
    if (!decode) return fail(decode.error());
    int bad = 0;
    Bf16 normed(kDim), queries(kQueries);
    bad |= normalise(*norm, normed);
    bad |= project(*gemv, normed, queries);
    bad |= attend(*decode, queries);
    if (bad != 0) std::fprintf(stderr, "engine: too far from float64, or not launched\n");
    return bad;
  }

 private:
  int normalise(const broach::Kernel& norm, Bf16& out) {
    const Bf16 x = numbers_.vector(kDim, 2.0);
    const Bf16 residual = numbers_.vector(kDim, 2.0);
    const Bf16 weight = numbers_.vector(kDim, 1.0);
    Bf16 sum = residual;
    RmsNormParams params{x.data(), sum.data(), weight.data(), out.data(), kEpsilon};
    broach::Result<void> launched;
    const double seconds = timed([&] {
      sum = residual;
      launched = norm.launch("acme_rms_norm", {}, broach::arguments(params));
    });
    if (!launched) return fail(launched.error());
    std::vector<double> sums(kDim), expected(kDim);
    double squares = 0;
    for (std::size_t i = 0; i < kDim; ++i) {
      sums[i] = widen(narrow(widen(x[i]) + widen(residual[i])));
      squares += sums[i] * sums[i];
    }
    const double scale = 1.0 / std::sqrt(squares / kDim + kEpsilon);
    for (std::size_t i = 0; i < kDim; ++i) expected[i] = sums[i] * scale * widen(weight[i]);
    return report("rms_norm", std::max(worst(out, expected), worst(sum, sums)), 5.0 * 2 * kDim,
                  seconds);
  }

  int project(const broach::Kernel& gemv, const Bf16& x, Bf16& y) {
    std::vector<std::uint32_t> weights(std::size_t{kQueries} * kDim / 8);
    for (auto& word : weights) word = numbers_.next();
    const Bf16 scales = numbers_.vector(std::size_t{kQueries} * kDim / kGroup, 0.01);
    const Gemv4Params params{weights.data(), scales.data(), x.data(), y.data(), kQueries};
    broach::Result<void> launched;
    const double seconds = timed([&] {
      launched =
          gemv.launch("acme_gemv4", {.grid = {kQueries / 4, 1, 1}}, broach::arguments(params));
    });
    if (!launched) return fail(launched.error());
    std::vector<double> expected(kQueries);
    for (std::size_t n = 0; n < kQueries; ++n) {
      for (std::size_t k = 0; k < kDim; ++k) {
        const int nibble = static_cast<int>(weights[(n * kDim + k) / 8] >> (4 * (k % 8)) & 15U) - 8;
        expected[n] += nibble * widen(scales[(n * kDim + k) / kGroup]) * widen(x[k]);
      }
    }
    return report(
        "gemv4", worst(y, expected),
        4.0 * static_cast<double>(weights.size()) + 2.0 * static_cast<double>(scales.size()),
        seconds);
  }

  int attend(const broach::WindowRowsDecode& decode, const Bf16& q) {
    const std::size_t row = std::size_t{kKvHeads} * kHeadDim;
    Bf16 k = numbers_.vector(kKeys * row, 1.0);
    Bf16 v = numbers_.vector(kKeys * row, 1.0);
    Bf16 out(kQueries);
    const std::int32_t position = kKeys - 1, slot = 0;
    broach::WindowRowsDecodeArgs args;
    args.attention.q = q.data();
    args.attention.out = out.data();
    args.attention.rows = 1;
    args.attention.scale = 0.125F;
    args.attention.q_head_stride = args.attention.out_head_stride = kHeadDim;
    args.attention.q_row_stride = args.attention.out_row_stride = kQueries;
    args.cache.k = k.data();
    args.cache.v = v.data();
    args.cache.kv_heads = kKvHeads;
    args.cache.slots = 1;
    args.cache.length = kKeys;
    args.cache.k_head_stride = args.cache.v_head_stride = kHeadDim;
    args.cache.k_position_stride = args.cache.v_position_stride = static_cast<std::int64_t>(row);
    args.cache.k_slot_stride = args.cache.v_slot_stride = static_cast<std::int64_t>(kKeys * row);
    args.positions = &position;
    args.slots = &slot;
    args.workspace_bytes = decode.workspace_bytes(1, kKvHeads, kKeys);
    std::vector<double> workspace(args.workspace_bytes / sizeof(double) + 1);
    args.workspace = workspace.data();
    broach::Result<void> launched;
    const double seconds = timed([&] { launched = decode.launch(args, nullptr); });
    if (!launched) return fail(launched.error());
    const std::vector<double> expected = attention(q, k, v);
    return report("decode", worst(out, expected), 4.0 * kWindow * static_cast<double>(row),
                  seconds);
  }

  static std::vector<double> attention(const Bf16& q, const Bf16& k, const Bf16& v) {
    std::vector<double> out(kQueries);
    for (std::size_t head = 0; head < kHeads; ++head) {
      const std::size_t kv = head / kRatio;
      std::vector<double> weights(kKeys);
      double sum = 0;
      for (std::size_t key = kKeys - kWindow; key < kKeys; ++key) {
        double score = 0;
        for (std::size_t d = 0; d < kHeadDim; ++d) {
          score += widen(q[head * kHeadDim + d]) * widen(k[(key * kKvHeads + kv) * kHeadDim + d]);
        }
        sum += weights[key] = std::exp(0.125 * score);
      }
      for (std::size_t key = kKeys - kWindow; key < kKeys; ++key) {
        for (std::size_t d = 0; d < kHeadDim; ++d) {
          out[head * kHeadDim + d] +=
              weights[key] / sum * widen(v[(key * kKvHeads + kv) * kHeadDim + d]);
        }
      }
    }
    return out;
  }

  broach::Runtime& runtime_;
  std::string directory_;
  Numbers numbers_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: engine DIRECTORY\n");
    return 2;
  }
  broach::Options options = broach::Options::from_environment();
  options.device = "host";
  auto runtime = broach::Runtime::create(std::move(options));
  if (!runtime) return fail(runtime.error());
  return Engine(*runtime, argv[1]).run();
}
