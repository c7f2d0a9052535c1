#include "runtime/kernel/prepare.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <thread>
#include <utility>

#include "runtime/kernel/own_launch.hpp"
#include "runtime/operator_request.hpp"
#include "runtime/runtime_state.hpp"

namespace broach {
namespace runtime {

Error begin_in_background(Runtime::State& runtime, const KernelShapeState& shape) {
  if (auto fault = runtime.pending.take_fault(shape.shape)) return *std::move(fault);
  if (runtime.pending.begins(shape.shape)) {
    runtime.background.post([&runtime, shape] {
      auto op = request_specialised(runtime, shape.shape, nullptr, OwnLaunch::make);
      runtime.pending.ended(shape.shape,
                            op ? std::nullopt : std::optional<Error>(std::move(op).error()));
    });
  }
  return Error{ErrorCode::kNotWarmed,
               fmt::format("{} is being loaded or compiled in the background; ask again later",
                           specializer::to_text(shape.shape)),
               {},
               Reason::kPending};
}

namespace {

/// Takes shapes one after another, on as many threads as there are, and keeps what they end in.
class Preparation {
 public:
  Preparation(Runtime::State& runtime, std::span<const std::shared_ptr<const KernelShapeState>> all,
              const PrepareOptions& options)
      : runtime_(runtime), all_(all), options_(options) {}

  void run() {
    for (std::size_t at = next_++; at < all_.size(); at = next_++) {
      const KernelShapeState kept = runtime_.families.keep(*all_[at]);
      const auto op = made(kept);
      end(specializer::to_text(kept.shape), op ? nullptr : &op.error());
    }
  }

  std::vector<NotPrepared> take() { return std::move(failed_); }

 private:
  /// What a thread of its own throws would end the process.
  Result<std::shared_ptr<const Operator>> made(const KernelShapeState& shape) noexcept try {
    return request_specialised(runtime_, shape.shape, nullptr, OwnLaunch::make);
  } catch (const std::bad_alloc&) {
    return Error{ErrorCode::kOutOfMemory, {}, {}};
  }

  void end(std::string shape, const Error* fault) {
    const std::lock_guard lock(mutex_);
    ++done_;
    if (fault != nullptr) failed_.push_back({shape, *fault});
    if (options_.progress) {
      options_.progress({done_, all_.size(), std::move(shape), fault});
    }
  }

  Runtime::State& runtime_;
  std::span<const std::shared_ptr<const KernelShapeState>> all_;
  const PrepareOptions& options_;
  std::atomic<std::size_t> next_{0};
  std::mutex mutex_;
  std::size_t done_ = 0;
  std::vector<NotPrepared> failed_;
};

}  // namespace
}  // namespace runtime

std::vector<NotPrepared> Runtime::prepare(std::span<const KernelShape> shapes,
                                          const PrepareOptions& options) {
  std::vector<std::shared_ptr<const runtime::KernelShapeState>> all;
  all.reserve(shapes.size());
  for (const KernelShape& shape : shapes) all.push_back(shape.state_);
  runtime::Preparation preparation(*state_, all, options);
  const std::uint32_t jobs =
      options.jobs != 0 ? options.jobs : std::max(2U, std::thread::hardware_concurrency());
  std::vector<std::jthread> others;
  for (std::size_t i = 1; i < std::min<std::size_t>(jobs, shapes.size()); ++i) {
    try {
      others.emplace_back([&preparation] { preparation.run(); });
    } catch (const std::system_error&) {
      break;  // Those that there are, and this one, do the work.
    }
  }
  preparation.run();
  others.clear();  // Joins.
  return preparation.take();
}

}  // namespace broach
