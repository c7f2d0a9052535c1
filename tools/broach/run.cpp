#include <fmt/core.h>

#include <charconv>
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "broach/runtime.hpp"
#include "runtime/runtime_state.hpp"
#include "specializer/plan.hpp"
#include "specializer/window_rows/shape.hpp"
#include "tools/broach/command.hpp"
#include "tools/broach/format.hpp"
#include "tools/broach/records.hpp"
#include "tools/broach/shape_argument.hpp"
#include "tools/contract/window_rows/run.hpp"

namespace broach::tool {
namespace {

namespace rows = contract::window_rows;

struct Wanted {
  std::vector<std::string> shape;
  std::string target;
  std::string device;
  std::optional<std::int32_t> rows;
  std::int32_t kv_heads = 8;
  std::int32_t position = 40'000;  // Of a decode's last row.
  std::int32_t p0 = 1'300;         // Of a prefill's first row.
  std::string image;               // "first:last", or empty.
  std::int32_t launches = 0;
};

constexpr std::int32_t kDecodeRows = 3;
constexpr std::int32_t kPrefillRows = 64;

/// What the run found, and how the kernel was come by.
struct Ran {
  rows::RunReport report;
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

/// `--device`, else the device of `--target`, else what the environment says.
Result<std::string> chosen_device(const Wanted& wanted, const Options& options) {
  if (!wanted.device.empty()) return wanted.device;
  if (wanted.target.empty()) return options.device;
  auto target = specializer::parse_target(wanted.target);
  if (!target) return target.error();
  return device_for(*target);
}

// Reads "40:300".
Result<std::optional<rows::ImageRows>> image_rows(const std::string& text) {
  if (text.empty()) return std::optional<rows::ImageRows>();
  rows::ImageRows image;
  const char* const end = text.data() + text.size();
  const auto first = std::from_chars(text.data(), end, image.first);
  const bool colon = first.ec == std::errc() && first.ptr != end && *first.ptr == ':';
  const auto last = std::from_chars(colon ? first.ptr + 1 : end, end, image.last);
  if (colon && last.ec == std::errc() && last.ptr == end) return std::optional(image);
  return Error{ErrorCode::kInvalidArgument,
               fmt::format("--hi {} is not first:last, such as 40:300", text), ""};
}

Result<rows::CaseSpec> prefill_case(const Wanted& wanted, const WindowRowsShape& shape) {
  auto image = image_rows(wanted.image);
  if (!image) return image.error();
  const rows::PrefillChunk chunk{0, wanted.p0, wanted.rows.value_or(kPrefillRows), *image};
  auto made = rows::prefill_of(
      fmt::format("prefill of {} rows from position {}{}", chunk.rows, chunk.position,
                  *image ? fmt::format(", rows {} see each other", wanted.image) : std::string()),
      shape, wanted.kv_heads, {chunk});
  if (!made) return made.error();
  return made;
}

// A shape that names neither its heads' size nor their number is the Gemma-4-like one.
Result<rows::CaseSpec> chosen_case(const Wanted& wanted) {
  auto argument = split_shape(wanted.shape);
  if (!argument) return argument.error();
  auto parsed = specializer::parse_shape(*argument->family, argument->items);
  if (!parsed) return parsed.error();
  auto typed = specializer::typed_of<WindowRowsShape>(*parsed);
  WindowRowsShape* const shape = &typed;
  const std::int32_t rows = wanted.rows.value_or(kDecodeRows);
  if (argument->items.empty()) {
    return rows::gemma_decode(rows, rows::CaseSize::kFull, Arith::kDefault);
  }
  if (shape->head_dim == 0 && shape->gqa_ratio == 0) {
    const WindowRowsShape gemma = rows::gemma_decode(1, rows::CaseSize::kFull).recipe.shape;
    shape->head_dim = gemma.head_dim;
    shape->gqa_ratio = gemma.gqa_ratio;
    if (shape->window == 0 && shape->kv_layout == KvLayout{}) {
      shape->window = gemma.window;
      shape->kv_layout = gemma.kv_layout;
    }
  }
  if (shape->form == Form::kPrefill) return prefill_case(wanted, *shape);
  return rows::made_decode(*shape, rows, wanted.kv_heads, wanted.position);
}

Result<Ran> run_case(Session& session, const Wanted& wanted) {
  auto chosen = chosen_case(wanted);
  if (!chosen) return chosen.error();
  Options options = session.options();
  auto device = chosen_device(wanted, options);
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
  auto plan = specializer::plan(chosen->recipe.shape, target);
  if (!plan) return plan.error();
  const auto start = std::chrono::steady_clock::now();
  auto artifact = runtime->state().forge.obtain(*plan, specializer::OnMiss::kCompile);
  if (!artifact) return artifact.error();
  if (auto loaded = rows::load_operator(*runtime, chosen->recipe.shape); !loaded) {
    return loaded.error();
  }
  const std::chrono::duration<double> ready = std::chrono::steady_clock::now() - start;
  rows::RunOptions run_options;
  run_options.timed_launches = wanted.launches > 0
                                   ? wanted.launches
                                   : (target.vendor == specializer::Vendor::kHost ? 5 : 100);
  runtime::Device& on = *runtime->state().device;
  auto report = rows::run_case(*runtime, on, *chosen, run_options);
  if (!report) return report.error();
  Ran ran;
  ran.report = std::move(*report);
  ran.name = chosen->name;
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

Result<ExitStatus> run(Session& session, const Wanted& wanted) {
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
      .add_option(
          "SHAPE", wanted->shape,
          "The family, and the shape in words; without head_dim and gqa_ratio a Gemma-4-like "
          "one, by itself a decode")
      .required();
  command.add_option("--target", wanted->target, "Run this target's code: host, sm_90a…");
  command.add_option("--device", wanted->device, "Run on this device: host, cuda:N, hip:N")
      .excludes("--target");
  command.add_option("--rows", wanted->rows, "Rows (default: 3 of a decode, 64 of a prefill)")
      .between(1, 65'535);
  command.add_option("--kv-heads", wanted->kv_heads, "KV heads, with a shape").shows_default();
  command
      .add_option("--position", wanted->position, "Position of a decode's last row, with a shape")
      .shows_default();
  command.add_option("--p0", wanted->p0, "Position of a prefill's first row")
      .not_negative()
      .shows_default();
  command.add_option("--hi", wanted->image,
                     "Rows of a prefill that see each other, as an image's do: first:last");
  command.add_option("--launches", wanted->launches,
                     "Timed launches (default: 5 on the host, 100 on a GPU)");
  command.footer(shape_help() +
                 "\nExit status 0 when every output is in float64's range, 1 when one is not.");
  command.action([wanted](Session& session) { return run(session, *wanted); });
}

}  // namespace broach::tool
