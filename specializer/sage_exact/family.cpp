#include "specializer/sage_exact/family.hpp"

#include <fmt/core.h>

#include <string>
#include <utility>

#include "specializer/sage_exact/kernel_source.hpp"
#include "specializer/sage_exact/shape.hpp"

namespace broach::specializer::sage_exact {
namespace {

constexpr std::uint32_t kMostMultiprocessors = 1024;
constexpr std::uint32_t kMostThreads = 4096;
constexpr std::uint32_t kMeanThreads = 128;  // Of a block of the mean's sums.

Error refused(std::string message) {
  return Error{ErrorCode::kInvalidArgument, "sage_exact " + std::move(message), ""};
}

Result<void> check_typed(const SageExactShape& shape) {
  if (shape.multiprocessors < 1 || shape.multiprocessors > kMostMultiprocessors) {
    return refused(fmt::format("multiprocessors={} is not served; 1..{} are", shape.multiprocessors,
                               kMostMultiprocessors));
  }
  if (shape.threads_per_multiprocessor < kMeanThreads ||
      shape.threads_per_multiprocessor > kMostThreads ||
      shape.threads_per_multiprocessor % kMeanThreads != 0) {
    return refused(
        fmt::format("threads_per_multiprocessor={} is not served; multiples of {} up to {} are",
                    shape.threads_per_multiprocessor, kMeanThreads, kMostThreads));
  }
  return {};
}

// The int8 and the f16 step of attention are m16n8k32 and m16n8k16, which begin with sm_80; AMD's
// chips and the host compute them without.
bool has_attention(const Target& target) {
  return target.vendor != Vendor::kNvidia || target.mma_step != MmaStep::kNone;
}

Error no_kernel(std::string message) {
  Error error{ErrorCode::kUnsupported, "sage_exact " + std::move(message), ""};
  error.reason = Reason::kNoKernel;
  return error;
}

/// The shape without what changes nothing of its boundary, so that two of them are not two kernels.
SageExactShape settled(SageExactShape shape, const Target& target) {
  if (shape.boundary != SageBoundary::kAttention) {
    shape.schedule = SageSchedule::kPlain;
  } else if (shape.schedule == SageSchedule::kDefault) {
    shape.schedule = schedule_for(target);
  }
  if (shape.boundary != SageBoundary::kKMean) {
    shape.multiprocessors = SageExactShape{}.multiprocessors;
    shape.threads_per_multiprocessor = SageExactShape{}.threads_per_multiprocessor;
  }
  return shape;
}

class SageExactFamily final : public Family {
 public:
  std::string_view name() const noexcept override { return "sage_exact"; }
  std::span<const Field> fields() const noexcept override { return kFields; }

  Result<void> check_ranges(const Shape& shape) const override {
    return check_typed(typed_of<SageExactShape>(shape));
  }

  Result<ServedShape> serve(const Shape& shape, const Target& target) const override {
    const auto typed = typed_of<SageExactShape>(shape);
    if (auto ranges = check_typed(typed); !ranges) return ranges.error();
    const SageExactShape resolved = settled(typed, target);
    if (resolved.boundary == SageBoundary::kAttention && !has_attention(target)) {
      return no_kernel(
          fmt::format("boundary=attention has no kernel on {}: the MMA steps of int8 and f16 that "
                      "it is made of need sm_80 or later; the other boundaries have one",
                      target.name));
    }
    if (resolved.schedule == SageSchedule::kWarpgroup &&
        schedule_for(target) != SageSchedule::kWarpgroup) {
      return no_kernel(fmt::format(
          "schedule=warpgroup needs sm_90a; {} is served by schedule=plain", target.name));
    }
    return served(shape_of(resolved), target);
  }

  Result<Rendered> render(const ServedShape& served, const Variant& variant) const override {
    const auto shape = typed_of<SageExactShape>(served.shape());
    SourceRequest request{shape, variant.control, variant.generic};
    if (variant.generic == Switch::kOn) request.shape.schedule = SageSchedule::kPlain;
    return Rendered{main_source(request), entries_of(request.shape)};
  }
};

}  // namespace

const Family& family() noexcept {
  static constinit const SageExactFamily kFamily;
  return kFamily;
}

}  // namespace broach::specializer::sage_exact
