#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "specializer/shape.hpp"
#include "tools/contract/gates.hpp"
#include "tools/contract/variants.hpp"

namespace broach::contract {
namespace {

// Elements of a cache that a longer declaration may take: the promise does not depend on it, the
// machine's memory does.
constexpr std::int64_t kMostCacheElems = std::int64_t{1} << 26;
constexpr std::int32_t kLongerTimes = 16;

// `rows` indices in another order than the base's, each base row at several places.
std::vector<std::int32_t> mixed_rows(std::int32_t rows, std::int32_t base_rows) {
  std::vector<std::int32_t> chosen;
  for (std::int32_t i = 0; i < rows; ++i) chosen.push_back((base_rows - 1 - i % base_rows));
  std::rotate(chosen.begin(), chosen.begin() + rows / 3, chosen.end());
  return chosen;
}

// The base run of a case and what its rows are compared with.
class Shapes {
 public:
  Shapes(const GateInput& input, GateReport& report) : input_(input), report_(report) {}

  void run() {
    auto made = make_decode(input_.decode_case->recipe);
    if (!made) return report_.fail(made.error().message);
    problem_ = std::move(*made);
    auto out = input_.kernel->run(problem_);
    if (!out) return report_.fail(out.error().message);
    out_ = std::move(*out);
    check_range();
    check_digest();
    check_host();
    check_batches();
    check_placement();
    check_spread();
    check_variants();
  }

 private:
  void check_range() {
    auto range = check_decode(problem_, out_, input_.threads);
    if (!range) return report_.fail(range.error().message);
    report_.judge(*range, input_.decode_case->name);
  }

  void check_digest() {
    if (input_.digest.empty()) return;
    const std::string digest = digest_of(problem_, out_);
    report_.comparisons += out_.size();
    if (digest == input_.digest) return;
    report_.fail(fmt::format("the outputs' digest is {}, pinned is {}", digest, input_.digest));
  }

  // Promise 9: the host target's bits.
  void check_host() {
    if (input_.host == nullptr) return;
    auto kernel = Kernel::load(*input_.host, input_.kernel->shape());
    if (!kernel) return report_.fail("host: " + kernel.error().message);
    compare(kernel->run(problem_), problem_, first_rows(problem_.rows), "the host target");
  }

  // Promise 1: alone, and in batches of 3, 17 and 64, at other indices.
  void check_batches() {
    for (const std::int32_t row : {0, problem_.rows / 2, problem_.rows - 1}) {
      batch({row}, fmt::format("row {} alone", row));
    }
    for (const std::int32_t rows : {3, 17, 64}) {
      batch(mixed_rows(rows, problem_.rows), fmt::format("a batch of {}", rows));
    }
  }

  void batch(const std::vector<std::int32_t>& rows, const std::string& name) {
    const DecodeProblem taken = problem_.take(rows);
    auto out = input_.kernel->run(taken);
    if (!out) return report_.fail(name + ": " + out.error().message);
    report_.comparisons += out->size();
    const std::string differs = difference(taken, *out, problem_, out_, rows);
    if (!differs.empty()) report_.fail(name + ": " + differs);
  }

  // Promise 2: other slots, a longer declaration; and other strides.
  void check_placement() {
    DecodeRecipe recipe = input_.decode_case->recipe;
    std::int32_t streams = 0;
    for (const RowAt& row : recipe.rows) streams = std::max(streams, row.stream + 1);
    for (std::int32_t i = streams; i-- > 0;) recipe.slot_of_stream.push_back(i + 1);
    recipe.slot_count = streams + 2;
    placed(*input_.kernel, recipe, "other slots");

    recipe = input_.decode_case->recipe;
    recipe.order = recipe.order == CacheOrder::kHeadsFirst ? CacheOrder::kPositionsFirst
                                                           : CacheOrder::kHeadsFirst;
    recipe.padding += 8;
    placed(*input_.kernel, recipe, "other strides");

    recipe = input_.decode_case->recipe;
    if (recipe.shape.kv_layout.kind == KvLayoutKind::kRing) return;  // A longer ring is a variant.
    const auto elems = static_cast<std::int64_t>(problem_.k.size());
    if (elems * kLongerTimes > kMostCacheElems) {
      report_.notes.push_back("the cache is too large to be declared 16 times longer here");
      return;
    }
    recipe.length = problem_.length * kLongerTimes;
    placed(*input_.kernel, recipe, "a cache declared 16 times longer");
  }

  // Promise 8: any assignment of tiles to blocks.
  void check_spread() {
    if (input_.kernel->shape().arith != Arith::kTile64) return;
    for (const std::uint32_t multiprocessors : {1U, 16U, 132U}) {
      auto kernel =
          Kernel::load(input_.kernel->bench(), input_.kernel->shape(), {}, multiprocessors);
      if (!kernel) return report_.fail(kernel.error().message);
      compare(kernel->run(problem_), problem_, first_rows(problem_.rows),
              fmt::format("spread over {} multiprocessors", multiprocessors));
    }
  }

  // Promises 2, 4 and 5: longer rings, other layouts, the generic kernel.
  void check_variants() {
    for (const ShapeVariant& variant : variants_of(*input_.decode_case)) {
      const specializer::Target& target = input_.kernel->bench().device->target();
      if (auto served = specializer::check(variant.shape, target); !served) {
        report_.notes.push_back(variant.name + " is not served: " + served.error().message);
        continue;
      }
      auto kernel = Kernel::load(input_.kernel->bench(), variant.shape, variant.variant);
      if (!kernel) {
        report_.fail(variant.name + ": " + kernel.error().message);
        continue;
      }
      DecodeRecipe recipe = input_.decode_case->recipe;
      recipe.shape = variant.shape;
      placed(*kernel, recipe, variant.name);
    }
  }

  void placed(const Kernel& kernel, const DecodeRecipe& recipe, const std::string& name) {
    auto made = make_decode(recipe);
    if (!made) return report_.fail(name + ": " + made.error().message);
    compare(kernel.run(*made), *made, first_rows(made->rows), name);
  }

  void compare(const Result<std::vector<std::uint16_t>>& out, const DecodeProblem& problem,
               const std::vector<std::int32_t>& where, const std::string& name) {
    if (!out) return report_.fail(name + ": " + out.error().message);
    report_.comparisons += out->size();
    const std::string differs = difference(problem, *out, problem_, out_, where);
    if (!differs.empty()) report_.fail(name + ": " + differs);
  }

  const GateInput& input_;
  GateReport& report_;
  DecodeProblem problem_;
  std::vector<std::uint16_t> out_;
};

}  // namespace

GateReport gate_shapes(const GateInput& input) {
  GateReport report;
  report.gate = Gate::kShapes;
  Shapes(input, report).run();
  return report;
}

}  // namespace broach::contract
