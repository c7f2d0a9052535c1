#include "tools/contract/window_rows/runner.hpp"

#include <fmt/core.h>

#include <charconv>
#include <limits>
#include <utility>

#include "specializer/window_rows/shape.hpp"
#include "tools/contract/window_rows/cases.hpp"
#include "tools/contract/window_rows/prefill.hpp"
#include "tools/contract/window_rows/run.hpp"

namespace broach::contract::window_rows {
namespace {

constexpr std::int32_t kDecodeRows = 3;
constexpr std::int32_t kPrefillRows = 64;
constexpr std::int32_t kKvHeads = 8;
constexpr std::int32_t kDecodePosition = 40'000;
constexpr std::int32_t kPrefillPosition = 1'300;

constexpr std::int32_t kMostRows = 65'535;
constexpr std::int32_t kMostKvHeads = 1'024;
constexpr std::int64_t kMostCacheElements = std::int64_t{1} << 31;

Error refused(std::string message) {
  return Error{ErrorCode::kInvalidArgument, std::move(message), ""};
}

// A cache without a ring holds every position up to the last.
std::int64_t most_position(const WindowRowsShape& shape, std::int64_t kv_heads) {
  if (shape.kv_layout.kind == KvLayoutKind::kRing) return std::numeric_limits<int>::max() - 1;
  return kMostCacheElements / (kv_heads * std::max<std::int64_t>(shape.head_dim, 1)) - 1;
}

// Reads "40:300".
Result<std::optional<ImageRows>> image_rows(const std::string& text) {
  if (text.empty()) return std::optional<ImageRows>();
  ImageRows image;
  const char* const end = text.data() + text.size();
  const auto first = std::from_chars(text.data(), end, image.first);
  const bool colon = first.ec == std::errc() && first.ptr != end && *first.ptr == ':';
  const auto last = std::from_chars(colon ? first.ptr + 1 : end, end, image.last);
  if (colon && last.ec == std::errc() && last.ptr == end) return std::optional(image);
  return refused(fmt::format("--hi {} is not first:last, such as 40:300", text));
}

Result<CaseSpec> prefill_case(const RunRequest& request, const WindowRowsShape& shape,
                              std::int32_t kv_heads) {
  if (request.position) return refused("--position is a decode's; a prefill takes --p0");
  auto image = image_rows(request.hi);
  if (!image) return image.error();
  const std::int32_t rows = request.rows.value_or(kPrefillRows);
  const std::int32_t p0 = request.p0.value_or(kPrefillPosition);
  if (auto ok = check_between("--p0", p0, 0, most_position(shape, kv_heads) - rows + 1); !ok) {
    return ok.error();
  }
  const PrefillChunk chunk{0, p0, rows, *image};
  return prefill_of(
      fmt::format("prefill of {} rows from position {}{}", chunk.rows, chunk.position,
                  *image ? fmt::format(", rows {} see each other", request.hi) : std::string()),
      shape, kv_heads, {chunk});
}

Result<CaseSpec> decode_case(const RunRequest& request, const WindowRowsShape& shape,
                             std::int32_t kv_heads) {
  if (request.p0 || !request.hi.empty()) {
    return refused("--p0 and --hi are a prefill's; a decode takes --position");
  }
  const std::int32_t position = request.position.value_or(kDecodePosition);
  if (auto ok = check_between("--position", position, 0, most_position(shape, kv_heads)); !ok) {
    return ok.error();
  }
  return made_decode(shape, request.rows.value_or(kDecodeRows), kv_heads, position);
}

Result<CaseSpec> case_of(const RunRequest& request) {
  const CaseSpec gemma =
      gemma_decode(request.rows.value_or(kDecodeRows), CaseSize::kFull, Arith::kDefault);
  auto shape = specializer::typed_of<WindowRowsShape>(request.shape);
  const std::int32_t kv_heads = request.kv_heads.value_or(kKvHeads);
  if (auto ok = check_between("--kv-heads", kv_heads, 1, kMostKvHeads); !ok) return ok.error();
  if (auto ok = check_between("--rows", request.rows.value_or(1), 1, kMostRows); !ok) {
    return ok.error();
  }
  if (!request.has_shape) {
    // As the model's manifest has it, so that a warmed cache serves it.
    CaseSpec example = gemma;
    example.recipe.shape.p32 = Switch::kOn;
    return example;
  }
  if (shape.head_dim == 0 && shape.gqa_ratio == 0) {
    shape.head_dim = gemma.recipe.shape.head_dim;
    shape.gqa_ratio = gemma.recipe.shape.gqa_ratio;
    if (shape.window == 0 && shape.kv_layout == KvLayout{}) {
      shape.window = gemma.recipe.shape.window;
      shape.kv_layout = gemma.recipe.shape.kv_layout;
    }
  }
  return shape.form == Form::kPrefill ? prefill_case(request, shape, kv_heads)
                                      : decode_case(request, shape, kv_heads);
}

class WindowRowsRunner final : public Runner {
 public:
  explicit WindowRowsRunner(CaseSpec spec)
      : spec_(std::move(spec)), shape_(specializer::shape_of(spec_.recipe.shape)) {}

  std::string name() const override { return spec_.name; }
  const specializer::Shape& shape() const override { return shape_; }

  Result<void> load(Runtime& runtime) const override {
    return load_operator(runtime, spec_.recipe.shape);
  }

  Result<RunReport> run(Runtime& runtime, runtime::Device& device,
                        const RunOptions& options) const override {
    return run_case(runtime, device, spec_, options);
  }

 private:
  CaseSpec spec_;
  specializer::Shape shape_;
};

}  // namespace

Result<std::unique_ptr<const Runner>> runner_of(const RunRequest& request) {
  auto made = case_of(request);
  if (!made) return made.error();
  return std::unique_ptr<const Runner>(std::make_unique<WindowRowsRunner>(std::move(*made)));
}

}  // namespace broach::contract::window_rows
