#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "specializer/target.hpp"
#include "tools/contract/harness/report.hpp"

namespace broach::contract {
namespace {

using Json = nlohmann::ordered_json;

std::string by_toolchain(std::string_view name) {
  return name.empty() ? std::string() : fmt::format(" ({})", name);
}

Json to_json(const CompilerReport& compiler) {
  return {{"toolchain", compiler.toolchain},  {"targets", name_of(compiler.vendor)},
          {"compiler", compiler.words},       {"missing", compiler.missing},
          {"stated", compiler.stated},        {"no_target", compiler.no_target},
          {"not_stated", compiler.not_stated}};
}

Json to_json(const LimitReport& limit) {
  return {{"target", limit.target},
          {"toolchain", limit.toolchain},
          {"compiler", limit.compiler},
          {"not_compiled", limit.not_compiled},
          {"binaries", limit.binaries},
          {"compiled", limit.compiled},
          {"compile_seconds", limit.compile_seconds},
          {"functions", limit.functions},
          {"asked_of_device", limit.live},
          {"problems", limit.problems},
          {"known_findings", limit.findings},
          {"unserved", limit.unserved}};
}

Json to_json(const LimitDifference& difference) {
  Json fields = Json::array();
  for (const FieldDifference& field : difference.fields) {
    fields.push_back({{"field", field.field}, {"before", field.before}, {"after", field.after}});
  }
  return {{"target", difference.target},
          {"function", difference.function},
          {"shape", Json::parse(difference.kernel)},
          {"before", difference.before},
          {"after", difference.after},
          {"fields", std::move(fields)}};
}

template <class Rows>
Json rows_json(const Rows& rows) {
  Json json = Json::array();
  for (const auto& row : rows) json.push_back(to_json(row));
  return json;
}

}  // namespace

std::string line_of(const CompilerReport& compiler) {
  const std::string by = by_toolchain(compiler.toolchain);
  if (!compiler.missing.empty()) {
    return fmt::format("no compiler for {} targets{}: {}", name_of(compiler.vendor), by,
                       compiler.missing);
  }
  std::string line =
      fmt::format("{}{} compiles for {} targets", compiler.words, by, name_of(compiler.vendor));
  if (!compiler.not_stated.empty()) {
    line += fmt::format("\n  not for {}", fmt::join(compiler.not_stated, " "));
  }
  for (const std::string& stated : compiler.no_target) {
    line += fmt::format("\n  states too, no target of broach: {}", stated);
  }
  return line;
}

std::string line_of(const LimitReport& limit) {
  const std::string by = by_toolchain(limit.toolchain);
  if (!limit.not_compiled.empty()) {
    return fmt::format("skip {}{}: not compiled here: {}", limit.target, by, limit.not_compiled);
  }
  std::string line =
      fmt::format("{} {}{}: {} functions of {} binaries by {}, {} compiled in {:.1f} s",
                  limit.problems.empty() ? "pass" : "FAIL", limit.target, by, limit.functions,
                  limit.binaries, limit.compiler, limit.compiled, limit.compile_seconds);
  if (limit.live > 0) line += fmt::format(", {} asked of the device", limit.live);
  if (!limit.unserved.empty()) {
    line += fmt::format(", no kernel for {}", fmt::join(limit.unserved, ", "));
  }
  for (const std::string& problem : limit.problems) line += "\n  " + problem;
  for (const std::string& finding : limit.findings) line += "\n  known: " + finding;
  return line;
}

std::string line_of(const LimitDifference& difference) {
  return fmt::format("differs {}: {} by {} and {}: {}: {}", difference.target, difference.function,
                     difference.before, difference.after, words_of(difference.fields),
                     difference.kernel);
}

std::string words_of(const LimitRun& run) {
  std::uint32_t binaries = 0;
  std::uint32_t compiled = 0;
  std::uint32_t targets = 0;
  for (const LimitReport& limit : run.targets) {
    binaries += limit.binaries;
    compiled += limit.compiled;
    if (limit.not_compiled.empty()) ++targets;
  }
  const auto hiprtcs =
      std::count_if(run.compilers.begin(), run.compilers.end(), [](const CompilerReport& compiler) {
        return compiler.vendor == specializer::Vendor::kAmd && compiler.missing.empty();
      });
  const std::string of_amd = hiprtcs == 0   ? "no hiprtc"
                             : hiprtcs == 1 ? "one hiprtc, no other was named or found"
                                            : fmt::format("{} hiprtcs", hiprtcs);
  const std::string left_out = run.left_out == 0
                                   ? ""
                                   : fmt::format("{} of {} targets left out; ", run.left_out,
                                                 specializer::known_targets().size());
  return fmt::format(
      "gate 5: {} binaries, {} of them compiled now, for {} pairs of a target and a compiler; "
      "{}{}; "
      "{} functions differ between toolchains; {:.1f} s",
      binaries, compiled, targets, left_out, of_amd, run.differences.size(), run.seconds);
}

Json to_json(const LimitRun& run) {
  return {{"seconds", run.seconds},
          {"targets_left_out", run.left_out},
          {"compilers", rows_json(run.compilers)},
          {"targets", rows_json(run.targets)},
          {"toolchain_differences", rows_json(run.differences)}};
}

}  // namespace broach::contract
