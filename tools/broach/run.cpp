#include <fmt/core.h>

#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "broach/runtime.hpp"
#include "runtime/runtime_state.hpp"
#include "specializer/plan.hpp"
#include "specializer/shape.hpp"
#include "tools/broach/command.hpp"
#include "tools/broach/format.hpp"
#include "tools/broach/records.hpp"
#include "tools/broach/shape_argument.hpp"
#include "tools/contract/families.hpp"
#include "tools/contract/harness/golden_family.hpp"

namespace broach::tool {
namespace {

struct Wanted {
  std::vector<std::string> shape;
  std::string target;
  std::string device;
  std::optional<std::int32_t> rows, kv_heads, position, p0;
  std::string hi;
  std::int32_t launches = 0;
  bool golden = false;
};

/// What the run found, and how the kernel was come by.
struct Ran {
  contract::RunReport report;
  std::string name;
  std::string key;
  std::string shape_json;
  bool compiled = false;
  double ready_seconds = 0;  ///< From the request to an operator that can be launched.
};

/// The device that runs a target's code.
std::string device_for(const specializer::Target& target) {
  switch (target.vendor) {
    case specializer::Vendor::kNvidia:
      return "cuda";
    case specializer::Vendor::kAmd:
      return "hip";
    case specializer::Vendor::kHost:
      break;
  }
  return target.name;
}

/// `--device`, else the device of `--target`, else what the session finds.
Result<std::string> chosen_device(const Wanted& wanted, const Session& session) {
  if (!wanted.device.empty()) return wanted.device;
  if (wanted.target.empty()) return session.own_device();
  auto target = specializer::parse_target(wanted.target);
  if (!target) return target.error();
  return device_for(*target);
}

Result<std::unique_ptr<const contract::Runner>> chosen_runner(const Wanted& wanted) {
  auto argument = split_shape(wanted.shape, {});
  if (!argument) return argument.error();
  auto shape = specializer::parse_shape(*argument->family, argument->items);
  if (!shape) return shape.error();
  auto family = contract::find_family(argument->family->name());
  if (!family) return family.error();
  return (*family)->runner({*shape, !argument->items.empty(), wanted.rows, wanted.kv_heads,
                            wanted.position, wanted.p0, wanted.hi});
}

/// A runtime on the device that was chosen, which runs the target that was named.
Result<Runtime> opened_runtime(Session& session, const Wanted& wanted) {
  Options options = session.options();
  auto device = chosen_device(wanted, session);
  if (!device) return device.error();
  options.device = *device;
  auto runtime = Runtime::create(options);
  if (!runtime) return runtime.error();
  const specializer::Target& target = runtime->state().device->target();
  if (!wanted.target.empty()) {
    auto named = specializer::parse_target(wanted.target);
    if (named && named->name != target.name) {
      return Error{ErrorCode::kUnsupported,
                   fmt::format("device {} runs {}, not {}", runtime->device_name(), target.name,
                               named->name),
                   ""};
    }
  }
  return runtime;
}

Result<Ran> run_case(Session& session, const Wanted& wanted) {
  auto chosen = chosen_runner(wanted);
  if (!chosen) return chosen.error();
  const contract::Runner& runner = **chosen;
  auto runtime = opened_runtime(session, wanted);
  if (!runtime) return runtime.error();
  const specializer::Target& target = runtime->state().device->target();
  auto served = specializer::serve(runner.shape(), target);
  if (!served) return served.error();
  auto plan = specializer::plan(*served);
  if (!plan) return plan.error();
  const auto start = std::chrono::steady_clock::now();
  auto artifact = runtime->state().forge.obtain(*plan, specializer::OnMiss::kCompile);
  if (!artifact) return artifact.error();
  if (auto loaded = runner.load(*runtime); !loaded) return loaded.error();
  const std::chrono::duration<double> ready = std::chrono::steady_clock::now() - start;
  contract::RunOptions run_options;
  run_options.timed_launches = wanted.launches > 0
                                   ? wanted.launches
                                   : (target.vendor == specializer::Vendor::kHost ? 5 : 100);
  runtime::Device& on = *runtime->state().device;
  auto report = runner.run(*runtime, on, run_options);
  if (!report) return report.error();
  Ran ran;
  ran.report = std::move(*report);
  ran.name = runner.name();
  ran.key = artifact->object->key.key.hex();
  ran.shape_json = plan->shape_json;
  ran.compiled = artifact->compiled;
  ran.ready_seconds = ready.count();
  return ran;
}

Json to_document(const Ran& ran) {
  const contract::RangeReport& range = ran.report.range;
  return {{"case", ran.name},
          {"device", ran.report.device},
          {"target", ran.report.target},
          {"key", ran.key},
          {"shape", parsed(ran.shape_json)},
          {"compiled", ran.compiled},
          {"ready_seconds", ran.ready_seconds},
          {"checked", range.checked},
          {"pinned", range.pinned},
          {"in_range", range.in_range},
          {"out_of_range", range.out_of_range},
          {"nonfinite_matched", range.nonfinite_matched},
          {"nonfinite_mismatch", range.nonfinite_mismatch},
          {"first", range.first ? Json(contract::words_of(*range.first)) : Json(nullptr)},
          {"worst", range.worst ? Json(contract::words_of(*range.worst)) : Json(nullptr)},
          {"launches", ran.report.timed_launches},
          {"median_us", ran.report.median_us},
          {"spread_us", ran.report.spread_us}};
}

std::string to_text(const Ran& ran) {
  const contract::RangeReport& range = ran.report.range;
  std::string text = fmt::format(
      "{} on {} ({})\n  {}\n  key {}, {} and loaded in {}\n", ran.name, ran.report.device,
      ran.report.target, shape_text(ran.shape_json), ran.key.substr(0, 12),
      ran.compiled ? "compiled" : "found in the cache", duration_text(ran.ready_seconds));
  text += fmt::format(
      "  {} outputs checked against float64: {} pinned to one value, {} in a wider range, {} out "
      "of range, {} of the wrong class\n",
      range.checked, range.pinned, range.in_range, range.out_of_range, range.nonfinite_mismatch);
  if (range.first) text += fmt::format("  first: {}\n", contract::words_of(*range.first));
  if (range.worst) text += fmt::format("  worst: {}\n", contract::words_of(*range.worst));
  text +=
      fmt::format("  {:.1f} us a launch (median of {}; the middle half lies within {:.1f} us)\n",
                  ran.report.median_us, ran.report.timed_launches, ran.report.spread_us);
  return text;
}

std::string golden_line(const contract::GoldenRow& row) {
  return fmt::format("{:<14} {:<10} {} {}\n", row.name, row.tensor, row.digest,
                     row.equal() ? "equal" : "differs from " + row.golden);
}

/// The table of a family's golden digests and their verdicts.
Result<ExitStatus> run_golden(Session& session, const Wanted& wanted) {
  auto argument = split_shape(wanted.shape, {});
  if (!argument) return argument.error();
  auto family = contract::find_family(argument->family->name());
  if (!family) return family.error();
  const auto* const held = dynamic_cast<const contract::GoldenFamily*>(*family);
  if (held == nullptr) {
    return Error{ErrorCode::kUnsupported, fmt::format("{} has no golden bytes", (*family)->name()),
                 ""};
  }
  auto runtime = opened_runtime(session, wanted);
  if (!runtime) return runtime.error();
  Output& output = session.output();
  const contract::Bench bench{runtime->state().device.get(), &runtime->state().forge};
  auto rows = held->golden(bench, [&](std::span<const contract::GoldenRow> of_case) {
    if (output.json()) return;
    for (const contract::GoldenRow& row : of_case) output.text(golden_line(row));
  });
  if (!rows) return rows.error();
  std::size_t equal = 0;
  Json table = Json::array();
  for (const contract::GoldenRow& row : *rows) {
    equal += row.equal() ? 1U : 0U;
    table.push_back({{"case", row.name},
                     {"tensor", row.tensor},
                     {"sha256", row.digest},
                     {"golden", row.golden},
                     {"equal", row.equal()}});
  }
  if (output.json()) {
    output.document({{"device", runtime->device_name()},
                     {"target", runtime->target_name()},
                     {"tensors", rows->size()},
                     {"equal", equal},
                     {"rows", std::move(table)}});
  } else {
    output.text(fmt::format("{} of {} tensors have the golden bytes on {} ({})\n", equal,
                            rows->size(), runtime->device_name(), runtime->target_name()));
  }
  return equal == rows->size() ? ExitStatus::kSuccess : ExitStatus::kDoesNotHold;
}

Result<ExitStatus> run(Session& session, const Wanted& wanted) {
  if (wanted.golden) return run_golden(session, wanted);
  auto ran = run_case(session, wanted);
  if (!ran) return ran.error();
  if (session.output().json()) {
    session.output().document(to_document(*ran));
  } else {
    session.output().text(to_text(*ran));
  }
  return ran->report.range.passed() ? ExitStatus::kSuccess : ExitStatus::kDoesNotHold;
}

}  // namespace

void add_run(CommandLine& line) {
  auto wanted = std::make_shared<Wanted>();
  Command command = line.add("run", "Run one operator on made inputs, judge every output, time it");
  command
      .add_option("SHAPE", wanted->shape,
                  "A family, and name=value for fields of its shape; a family by itself has an "
                  "example")
      .required();
  command.add_option("--target", wanted->target, "Run this target's code: host, sm_90a…");
  command.add_option("--device", wanted->device, "Run on this device: host, cuda:N, hip:N")
      .excludes("--target");
  command.add_option("--rows", wanted->rows,
                     "Rows (default: the family's; 3 of a decode, 64 of a prefill)");
  command.add_option("--kv-heads", wanted->kv_heads, "KV heads (default: the family's)");
  command.add_option("--position", wanted->position,
                     "Position of the last row, but of a prefill (default: the family's)");
  command.add_option("--p0", wanted->p0,
                     "Position of the first row, but of a decode (default of a prefill: 1300)");
  command.add_option("--hi", wanted->hi,
                     "Rows of a prefill that see each other, as an image's do: first:last");
  command
      .add_option("--launches", wanted->launches,
                  "Timed launches (default: 5 on the host, 100 on a GPU)")
      .between(1, 1'000'000);
  command.add_flag("--golden", wanted->golden,
                   "Hold every golden case of the family against the device, tensor by tensor");
  command.footer(shape_help() +
                 "\nExit status 0 when every output is in float64's range, 1 when one is not.");
  command.action([wanted](Session& session) { return run(session, *wanted); });
}

}  // namespace broach::tool
