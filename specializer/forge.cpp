#include "specializer/forge.hpp"

#include <chrono>
#include <utility>

#include "specializer/obtain.hpp"

namespace broach::specializer {

Forge::Forge(std::shared_ptr<cache::Cache> cache, std::shared_ptr<Compilers> compilers)
    : cache_(std::move(cache)), compilers_(std::move(compilers)) {}

Result<Artifact> Forge::obtain(const Plan& plan, OnMiss on_miss) {
  const ObtainSteps steps{
      [this](const Target& target) { return compilers_->identity(target); },
      [this](const Plan& wanted) { return compilers_->compile(wanted); },
      [] {
        const auto now = std::chrono::system_clock::now().time_since_epoch();
        return std::int64_t{std::chrono::duration_cast<std::chrono::milliseconds>(now).count()};
      },
      compilers_->limits()};
  return specializer::obtain(*cache_, steps, plan, on_miss);
}

Result<cache::KeyRecord> Forge::key(const Plan& plan) {
  auto compiler = compilers_->identity(plan.target);
  if (!compiler) return compiler.error();
  return key_of(plan, compiler->key_text);
}

}  // namespace broach::specializer
