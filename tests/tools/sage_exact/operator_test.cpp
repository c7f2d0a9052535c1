#include <cmath>
#include <cstring>

#include "broach/sage_exact.hpp"
#include "common/half.cuh"
#include "tests/tools/sage_exact/support.hpp"

// The operator that an engine calls, on the host target.
namespace broach {
namespace {

using contract::sage_exact::GoldenCase;
using contract::sage_exact::kHeadDim;
using contract::sage_exact::sha256_of;

Runtime& host_runtime() {
  static const test::OpenedRuntime host("host");
  REQUIRE(host.runtime);
  return *host.runtime;
}

SageExact opened() {
  auto op = sage_exact(host_runtime());
  INFO((op ? std::string() : op.error().message + op.error().detail));
  REQUIRE(op);
  return *op;
}

/// A case's arguments over memory of its own.
struct Call {
  explicit Call(const SageExact& op, const GoldenCase& golden)
      : input(make_input(golden)),
        out(golden.rule.tokens * golden.rule.heads * kHeadDim, 0xffff),
        workspace(op.workspace_bytes(static_cast<std::int32_t>(golden.rule.tokens),
                                     static_cast<std::int32_t>(golden.rule.heads)) +
                  256) {
    const auto part = static_cast<std::int64_t>(golden.rule.heads * kHeadDim);
    args.q = {input.data(), 3 * part, 0};
    args.k = {input.data() + part, 3 * part, 0};
    args.v = {input.data() + 2 * part, 3 * part, 0};
    args.out = out.data();
    args.out_row_stride = part;
    args.tokens = static_cast<std::int32_t>(golden.rule.tokens);
    args.heads = static_cast<std::int32_t>(golden.rule.heads);
    const auto address = reinterpret_cast<std::uintptr_t>(workspace.data());
    args.workspace = workspace.data() + (256 - address % 256) % 256;
    args.workspace_bytes = op.workspace_bytes(args.tokens, args.heads);
  }

  std::vector<std::uint16_t> input;
  std::vector<std::uint16_t> out;
  std::vector<std::byte> workspace;
  SageExactArgs args;
};

}  // namespace

TEST_CASE("one call runs every boundary and leaves the golden output", "[runtime][sage_exact]") {
  const SageExact op = opened();
  const GoldenCase& golden = test::golden("n200_h2");
  Call call(op, golden);
  const auto ran = op.run(call.args, nullptr);
  INFO((ran ? std::string() : ran.error().message));
  REQUIRE(ran);
  CHECK(sha256_of(call.out.data(), call.out.size() * 2) == golden.digest("out"));
}

TEST_CASE("each boundary runs alone, and leaves its tensors where `places` says",
          "[runtime][sage_exact]") {
  const SageExact op = opened();
  const GoldenCase& golden = test::golden("n128_h2");
  Call call(op, golden);
  const auto places = op.places(call.args);
  REQUIRE(places);
  const std::size_t elements = call.out.size();
  REQUIRE(op.k_mean(call.args, nullptr));
  CHECK(sha256_of(places->k_mean, 2 * kHeadDim * 2) == golden.digest("k_mean"));
  REQUIRE(op.qk_int8(call.args, nullptr));
  CHECK(sha256_of(places->quantised.q, elements) == golden.digest("q_int8"));
  CHECK(sha256_of(places->quantised.k, elements) == golden.digest("k_int8"));
  REQUIRE(op.v_fp8(call.args, nullptr));
  CHECK(sha256_of(places->quantised.v, elements) == golden.digest("v_fp8"));
  REQUIRE(op.attention(call.args, nullptr));
  CHECK(sha256_of(call.out.data(), elements * 2) == golden.digest("out"));
}

TEST_CASE("attention takes tensors that the caller quantised", "[runtime][sage_exact]") {
  const SageExact op = opened();
  const GoldenCase& golden = test::golden("n128_h2");
  Call made(op, golden);
  REQUIRE(op.run(made.args, nullptr));
  const auto places = op.places(made.args);
  REQUIRE(places);
  Call other(op, golden);
  other.args.q = other.args.k = other.args.v = {};
  other.args.quantised = places->quantised;
  REQUIRE(op.attention(other.args, nullptr));
  CHECK(sha256_of(other.out.data(), other.out.size() * 2) == golden.digest("out"));
  // Some of them alone are refused.
  other.args.quantised.v_scale = nullptr;
  const auto refused = op.attention(other.args, nullptr);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().message.find("quantised.v_scale") != std::string::npos);
}

TEST_CASE("arguments are refused by name, value and bound", "[runtime][sage_exact]") {
  const SageExact op = opened();
  const GoldenCase& golden = test::golden("n50_h1");
  const auto refusal = [&](auto change) {
    Call call(op, golden);
    change(call.args);
    const auto ran = op.run(call.args, nullptr);
    REQUIRE_FALSE(ran);
    CHECK(ran.error().code == ErrorCode::kInvalidArgument);
    return ran.error().message;
  };
  using Args = SageExactArgs;
  CHECK(refusal([](Args& args) { args.tokens = 0; }).find("tokens=0") != std::string::npos);
  CHECK(refusal([](Args& args) { args.heads = -1; }).find("heads=-1") != std::string::npos);
  CHECK(refusal([](Args& args) { args.k.data = nullptr; }).find("k is null") != std::string::npos);
  CHECK(refusal([](Args& args) { args.v.row_stride = 12; }).find("v.row_stride=12") !=
        std::string::npos);
  CHECK(refusal([](Args& args) {
          args.out = static_cast<std::byte*>(args.out) + 2;
        }).find("out is not aligned") != std::string::npos);
  CHECK(refusal([](Args& args) { args.workspace_bytes -= 1; }).find("workspace_bytes") !=
        std::string::npos);
  CHECK(op.workspace_bytes(0, 1) == 0);
}

TEST_CASE("shapes beyond the family's ranges are refused, and warpgroup off sm_90a",
          "[runtime][sage_exact]") {
  SageExactShape shape;
  shape.multiprocessors = 0;
  auto op = sage_exact(host_runtime(), shape);
  REQUIRE_FALSE(op);
  CHECK(op.error().message.find("multiprocessors=0") != std::string::npos);
  shape = {};
  shape.threads_per_multiprocessor = 100;
  CHECK_FALSE(sage_exact(host_runtime(), shape));
  shape = {};
  shape.schedule = SageSchedule::kWarpgroup;
  op = sage_exact(host_runtime(), shape);
  REQUIRE_FALSE(op);
  CHECK(op.error().code == ErrorCode::kUnsupported);
  CHECK(opened().shape().schedule == SageSchedule::kPlain);
}

TEST_CASE("preparation lies beside float64's, and is the rotation it says",
          "[runtime][sage_exact]") {
  const SageExact op = opened();
  constexpr std::size_t kTokens = 5;
  constexpr std::size_t kHeads = 3;
  const std::vector<std::uint16_t> input =
      contract::sage_exact::make_input({kTokens, kHeads, 21, 1});
  std::vector<std::uint16_t> cosine(kTokens * 48), sine(kTokens * 48), weight(kHeadDim);
  std::vector<std::uint16_t> out(kTokens * kHeads * kHeadDim, 0xffff);
  for (std::size_t i = 0; i < cosine.size(); ++i) {
    const double angle = 0.37 * static_cast<double>(i);
    cosine[i] = narrow<Half::kBf16>(static_cast<float>(std::cos(angle)));
    sine[i] = narrow<Half::kBf16>(static_cast<float>(std::sin(angle)));
  }
  for (std::size_t d = 0; d < kHeadDim; ++d) {
    weight[d] = narrow<Half::kBf16>(0.5F + static_cast<float>(d) / 128.0F);
  }
  SageExactPrepArgs args;
  args.in = {input.data(), static_cast<std::int64_t>(3 * kHeads * kHeadDim), 0};
  args.out = out.data();
  args.weight = weight.data();
  args.cosine = cosine.data();
  args.sine = sine.data();
  args.out_row_stride = kHeads * kHeadDim;
  args.tokens = kTokens;
  args.heads = kHeads;
  REQUIRE(op.prep(args, nullptr));
  const auto value = [](std::uint16_t bits) {
    return static_cast<double>(widen<Half::kBf16>(bits));
  };
  double furthest = 0;
  for (std::size_t token = 0; token < kTokens; ++token) {
    for (std::size_t head = 0; head < kHeads; ++head) {
      const std::uint16_t* const x = &input[token * 3 * kHeads * kHeadDim + head * kHeadDim];
      double sum = 0;
      for (std::size_t d = 0; d < kHeadDim; ++d) sum += value(x[d]) * value(x[d]);
      double y[kHeadDim];
      for (std::size_t d = 0; d < kHeadDim; ++d) {
        const double exact = value(x[d]) / std::sqrt(sum / 128 + 1e-5) * value(weight[d]);
        y[d] = value(narrow<Half::kBf16>(exact));
      }
      for (std::size_t d = 0; d < kHeadDim; ++d) {
        double want = y[d];
        if (d < 96) {
          const std::size_t pair = d % 48;
          const double c = value(cosine[token * 48 + pair]);
          const double s = value(sine[token * 48 + pair]);
          want = d < 48 ? y[d] * c - y[d + 48] * s : y[d] * c + y[d - 48] * s;
        }
        const double got = value(out[(token * kHeads + head) * kHeadDim + d]);
        // A rounding of y may fall on the other side: one unit of bf16 of the operands, and one of
        // the result.
        const double reach = 0x1p-8 * (std::abs(want) + 2 * 4.5);
        furthest = std::max(furthest, std::abs(got - want) / reach);
      }
    }
  }
  CHECK(furthest < 1);
  CHECK(furthest > 0);
}

}  // namespace broach
