#include "specializer/obtain.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "cache/metrics.hpp"
#include "specializer/any_compiler.hpp"
#include "specializer/limits.hpp"
#include "specializer/refusals.hpp"

namespace broach::specializer {
namespace {

std::string plan_text(const Plan& plan) {
  std::string text = plan.family;
  for (const ShapeParameter& parameter : plan.parameters) {
    text += fmt::format(" {}={}", parameter.name, parameter.value);
  }
  return text;
}

cache::Description describe(const Plan& plan, const CompilerIdentity& compiler) {
  return {plan.family,       plan.target.name,  plan.shape_json,
          source_hash(plan), compiler.key_text, std::string(name_of(plan.kind))};
}

class Obtaining {
 public:
  Obtaining(cache::Cache& cache, const ObtainSteps& steps, const Plan& plan)
      : cache_(cache), steps_(steps), plan_(plan) {}

  Result<Artifact> run(OnMiss on_miss) {
    auto compiler = steps_.identity(plan_.target);
    // Whatever keeps the compiler from saying who it is: no compiler, no process, no scratch.
    if (!compiler) return without_compilers(compiler.error(), on_miss);
    const cache::KeyRecord key = key_of(plan_, compiler->key_text);
    if (on_miss == OnMiss::kRefuse) {
      if (auto hit = cache_.find(key)) return served(std::move(*hit));
      return not_warmed(fmt::format("made by {}", compiler->words));
    }
    using Remembered = cache::MakeTerms::Remembered;
    const cache::MakeTerms terms{steps_.limits, on_miss == OnMiss::kCompileAnew
                                                    ? Remembered::kIsTriedAgain
                                                    : Remembered::kStands};
    auto hit = cache_.find_or_make(
        key,
        [&](const cache::Stage& stage) -> Result<cache::Object> {
          return make(key, *compiler, stage);
        },
        terms);
    if (other_) return served(std::move(*other_));
    if (hit) return served(std::move(*hit));
    if (hit.error().reason != Reason::kCompilerChanged) return hit.error();
    // Another thread's maker found it changed, and this one waited for it: under the new
    // compiler's key the binary is there.
    auto now = steps_.identity(plan_.target);
    if (now && now->key_text != compiler->key_text) {
      if (auto found = cache_.find(key_of(plan_, now->key_text))) return served(std::move(*found));
    }
    return hit.error();
  }

 private:
  Artifact served(cache::Hit hit) const {
    return {std::move(hit.object), std::move(hit.layer), compiled_};
  }

  Result<cache::Object> make(const cache::KeyRecord& key, const CompilerIdentity& expected,
                             const cache::Stage& stage) {
    stage("compile");
    const cache::Stopwatch watch;
    auto output = steps_.compile(plan_);
    cache_.metrics().record(
        output ? cache::Timing::kCompileDone : cache::compile_timing(output.error().code),
        watch.elapsed());
    if (!output) return output.error();
    compiled_ = true;
    stage("limits");
    auto limits = read_limits(plan_, output->binary, output->log, output->symbols);
    if (!limits) {
      Error error = limits.error();
      error.message = fmt::format("{} made a binary for {} that does not read: {}",
                                  output->compiler.words, plan_.target.name, error.message);
      error.detail = output->log;
      return error;
    }
    stage("publish");
    cache::Object object;
    object.key = key;
    object.description = describe(plan_, output->compiler);
    object.provenance = {steps_.now_unix_ms(),
                         output->compile_ms,
                         BROACH_SPECIALIZER_VERSION,
                         output->compiler.words,
                         cuda_words(least_driver(plan_.target, output->compiler)),
                         std::move(output->log)};
    object.limits = std::move(*limits);
    object.payload = std::move(output->binary);
    if (output->compiler.key_text == expected.key_text) return object;

    // The compiler was replaced since its identity was asked for: the binary belongs to the new
    // one's key. It serves this call. The cache remembers no kCompilerMissing as the key's failure.
    object.key = key_of(plan_, output->compiler.key_text);
    other_ = cache_.publish(std::move(object));
    return Error{ErrorCode::kCompilerMissing,
                 fmt::format("the compiler for {} changed from {} to {} while it compiled; asking "
                             "again works",
                             plan_.target.name, expected.words, output->compiler.words),
                 "", Reason::kCompilerChanged};
  }

  // Serves what some compiler made of this very plan: the key's other fields are all the same, and
  // which compiler it was cannot matter where there is none. Reads the index, so it is slower.
  Result<Artifact> without_compilers(Error missing, OnMiss on_miss) const {
    if (auto entries = cache_.entries()) {
      for (const cache::KeyRecord& key : made_by_any_compiler(cache_, *entries, plan_)) {
        if (auto hit = cache_.find(key)) return served(std::move(*hit));
      }
    }
    if (on_miss == OnMiss::kRefuse) return not_warmed("made by any compiler");
    return missing;
  }

  Error not_warmed(std::string_view by) const {
    cache_.record_miss(
        {plan_.family, plan_.shape_json, plan_.target.name, 1, steps_.now_unix_ms()});
    return Error{ErrorCode::kNotWarmed,
                 fmt::format("{} for {} is in no cache layer ({}), and compiling is not allowed "
                             "here; the miss is in the journal, so `broach warm --from-journal "
                             "--target {}` makes it",
                             plan_text(plan_), plan_.target.name, by, plan_.target.name),
                 ""};
  }

  cache::Cache& cache_;
  const ObtainSteps& steps_;
  const Plan& plan_;
  bool compiled_ = false;
  std::optional<cache::Hit> other_;
};

}  // namespace

Version least_driver(const Target& target, const CompilerIdentity& compiler) {
  if (target.vendor != Vendor::kNvidia) return {};
  // A binary runs under every driver of its toolkit's major version, and under none before it.
  return std::max(target.least_driver, Version{compiler.toolkit.major, 0});
}

Result<Artifact> obtain(cache::Cache& cache, const ObtainSteps& steps, const Plan& plan,
                        OnMiss on_miss) {
  auto artifact = Obtaining(cache, steps, plan).run(on_miss);
  if (!artifact) return artifact;
  // After it was stored: the next process is refused without a compile.
  if (auto held = check_refusals(plan, artifact->object->limits); !held) return held.error();
  return artifact;
}

}  // namespace broach::specializer
