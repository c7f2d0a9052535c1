#include "tools/contract/sage_exact/trial.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <optional>
#include <utility>

#include "tools/contract/sage_exact/problem.hpp"

namespace broach::contract::sage_exact {
namespace {

constexpr std::uint16_t kNan = 0x7fff;

/// The case as gate 1 plants it: one NaN and one infinity in v of the first head, in a token that
/// every row sees.
constexpr std::size_t kNanDim = 5;
constexpr std::size_t kInfiniteDim = 77;

class SageExactTrial final : public Trial {
 public:
  SageExactTrial(const Bench& bench, GoldenCase golden, Kernels sound,
                 std::optional<Kernels> faulty)
      : bench_(bench),
        golden_(std::move(golden)),
        sound_(std::move(sound)),
        faulty_(std::move(faulty)) {}

  const cache::Key& key() const noexcept override { return kernels().key(); }

  Result<std::vector<std::byte>> run(Poison poison) override {
    auto problem = made(make_input(golden_), poison);
    if (!problem) return problem.error();
    return all_bytes(*problem);
  }

  std::string place_of(std::size_t byte) const override {
    return fmt::format("byte {} of the boundary tensors from k_mean on", byte);
  }

  void nonfinite(GateReport& report, const GateOptions& /*options*/) override {
    std::vector<std::uint16_t> input = make_input(golden_.rule);
    auto before = made(input, Poison::kNan);
    if (!before) return report.fail(before.error().message);
    const std::size_t first = 2 * golden_.rule.heads * kHeadDim;
    input[first + kNanDim] = 0x7fc1;
    input[first + kInfiniteDim] = 0xff80;
    auto after = made(input, Poison::kFinite);
    if (!after) return report.fail(after.error().message);
    const auto left = outputs(*before);
    const auto right = outputs(*after);
    if (!left || !right) return report.fail("the output could not be read");
    for (std::size_t i = 0; i < left->size(); ++i) {
      const std::size_t dim = i % kHeadDim;
      const bool planted =
          i / kHeadDim % golden_.rule.heads == 0 && (dim == kNanDim || dim == kInfiniteDim);
      const std::uint16_t want = planted ? kNan : (*left)[i];
      ++report.comparisons;
      if ((*right)[i] != want) {
        return report.fail(fmt::format("output {}: {:04x}, wanted {:04x}", i, (*right)[i], want));
      }
    }
  }

  void shapes(GateReport& report, const GateOptions& options) override {
    auto problem = made(make_input(golden_), Poison::kNan);
    if (!problem) return report.fail(problem.error().message);
    if (!has_golden_bytes(bench_.device->target())) {
      report.notes.push_back("no golden bytes exist for " + bench_.device->target().name);
    } else {
      auto digests = problem->digests();
      if (!digests) return report.fail(digests.error().message);
      for (const auto& [tensor, digest] : *digests) {
        ++report.comparisons;
        if (digest == golden_.digest(tensor)) continue;
        report.fail(fmt::format("{} {}: SHA-256 {}, golden {}", golden_.name, tensor,
                                digest.substr(0, 16), golden_.digest(tensor).substr(0, 16)));
        if (options.ends_with(report)) return;
      }
    }
    if (faulty_ || bench_.device->target().arch != "sm_90a") return;
    auto plain = Kernels::load(bench_, SageSchedule::kPlain);
    if (!plain) return report.fail(plain.error().message);
    auto other = made(make_input(golden_), Poison::kFinite, &*plain);
    if (!other) return report.fail(other.error().message);
    auto left = all_bytes(*problem);
    auto right = all_bytes(*other);
    if (!left || !right) return report.fail("the tensors could not be read");
    report.comparisons += left->size();
    if (*left != *right) report.fail("the warpgroup kernel's bytes are not the plain kernel's");
  }

  void sums(GateReport& report, const GateOptions& /*options*/) override {
    std::vector<std::uint16_t> input = make_input(golden_.rule);
    const std::size_t part = golden_.rule.heads * kHeadDim;
    for (std::size_t token = 0; token < golden_.rule.tokens; ++token) {
      std::uint16_t* const row = &input[token * golden_.rule.row_width()];
      std::fill(row + part, row + 2 * part, std::uint16_t{0x3f80});
      std::fill(row + 2 * part, row + 3 * part, std::uint16_t{0x4010});  // 2.25
    }
    auto problem = made(input, Poison::kNan);
    if (!problem) return report.fail(problem.error().message);
    const auto out = outputs(*problem);
    if (!out) return report.fail("the output could not be read");
    // p is at most 2^-4 of itself away from its E4M3, and v's scale makes 2.25 exact.
    for (const std::uint16_t bits : *out) {
      ++report.comparisons;
      const auto value = std::bit_cast<float>(std::uint32_t{bits} << 16);
      if (value >= 2.25F * 15 / 16 && value <= 2.25F * 17 / 16 && bits == out->front()) continue;
      return report.fail(fmt::format("an output is {} where every value is 2.25", value));
    }
  }

 private:
  const Kernels& kernels() const noexcept { return faulty_ ? *faulty_ : sound_; }
  std::uint32_t tokens() const { return static_cast<std::uint32_t>(golden_.rule.tokens); }
  std::uint32_t heads() const { return static_cast<std::uint32_t>(golden_.rule.heads); }

  Result<Problem> made(const std::vector<std::uint16_t>& input, Poison poison,
                       const Kernels* with = nullptr) const {
    auto problem = Problem::make(*bench_.device, tokens(), heads(), input);
    if (!problem) return problem;
    if (auto ran = problem->run(with == nullptr ? kernels() : *with, poison); !ran) {
      return ran.error();
    }
    return problem;
  }

  static Result<std::vector<std::byte>> all_bytes(const Problem& problem) {
    std::vector<std::byte> all;
    for (const NamedTensor& tensor : problem.tensors()) {
      auto bytes = problem.bytes_of(tensor.name);
      if (!bytes) return bytes.error();
      all.insert(all.end(), bytes->begin(), bytes->end());
    }
    return all;
  }

  // Byte for byte the golden tensors; elsewhere the plain kernel's own.
  // A NaN and an infinity in v make their channels of their head NaN and leave every other byte.
  // Equal keys make every score 0 and every p 448 or, in the last two tiles, the same value; equal
  // values of v then come back exactly whatever the order of the sums.
  static Result<std::vector<std::uint16_t>> outputs(const Problem& problem) {
    auto bytes = problem.bytes_of("out");
    if (!bytes) return bytes.error();
    std::vector<std::uint16_t> values(bytes->size() / 2);
    std::copy(bytes->begin(), bytes->end(), reinterpret_cast<std::byte*>(values.data()));
    return values;
  }

  Bench bench_;
  GoldenCase golden_;
  Kernels sound_;
  std::optional<Kernels> faulty_;
};

}  // namespace

bool has_golden_bytes(const specializer::Target& target) {
  // The host of two k8 steps stands in for another chip; its f16 step is sm_90's all the same.
  return target.arch == "sm_90a" || target.vendor == specializer::Vendor::kHost;
}

Result<std::unique_ptr<Trial>> load_trial(const Bench& bench, const GoldenCase& golden,
                                          const std::string& control) {
  auto sound = Kernels::load(bench, SageSchedule::kDefault);
  if (!sound) return sound.error();
  std::optional<Kernels> faulty;
  if (!control.empty()) {
    auto planted = Kernels::plant(*sound, bench, SageSchedule::kDefault, control);
    if (!planted) return planted.error();
    faulty.emplace(std::move(*planted));
  }
  return std::unique_ptr<Trial>(
      std::make_unique<SageExactTrial>(bench, golden, std::move(*sound), std::move(faulty)));
}

}  // namespace broach::contract::sage_exact
