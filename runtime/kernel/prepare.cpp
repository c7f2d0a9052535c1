#include "runtime/kernel/prepare.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include "runtime/kernel/own_launch.hpp"
#include "runtime/operator_request.hpp"
#include "runtime/runtime_state.hpp"

namespace broach {
namespace runtime {

namespace {

/// A kernel that is on its way. However that ends, thrown out of or dropped unbegun too, it is no
/// longer pending afterwards: whoever asks again would wait for ever.
class OnItsWay {
 public:
  OnItsWay(Runtime::State& runtime, const KernelShapeState& shape)
      : runtime_(runtime), shape_(shape) {}
  ~OnItsWay() { runtime_.pending.ended(shape_.shape, std::move(fault_)); }
  OnItsWay(const OnItsWay&) = delete;
  OnItsWay& operator=(const OnItsWay&) = delete;

  void make() {
    auto op = request_specialised(runtime_, shape_.shape, nullptr, OwnLaunch::make);
    if (op) {
      fault_.reset();
    } else {
      fault_ = std::move(op).error();
    }
  }

 private:
  Runtime::State& runtime_;
  KernelShapeState shape_;
  std::optional<Error> fault_ = Error{ErrorCode::kOutOfMemory, "no memory to begin it", {}};
};

}  // namespace

Error begin_in_background(Runtime::State& runtime, const KernelShapeState& shape) {
  if (auto fault = runtime.pending.take_fault(shape.shape)) return *std::move(fault);
  if (runtime.pending.begins(shape.shape)) {
    std::shared_ptr<OnItsWay> way;
    try {
      way = std::make_shared<OnItsWay>(runtime, shape);
    } catch (const std::bad_alloc&) {
      runtime.pending.ended(shape.shape, std::nullopt);
      throw;
    }
    runtime.background.post([way = std::move(way)] { way->make(); });
  }
  return Error{ErrorCode::kNotWarmed,
               fmt::format("{} is being loaded or compiled in the background; ask again later",
                           specializer::to_text(shape.shape)),
               {},
               Reason::kPending};
}

namespace {

/// Takes shapes one after another, on as many threads as there are, and keeps what each ends in.
class Preparation {
 public:
  Preparation(Runtime::State& runtime, std::span<const std::shared_ptr<const KernelShapeState>> all,
              const PrepareOptions& options)
      : runtime_(runtime), all_(all), options_(options), faults_(all.size(), unfinished()) {}

  void run() {
    for (std::size_t at = next_++; at < all_.size(); at = next_++) {
      const KernelShapeState kept = runtime_.families.keep(*all_[at]);
      const auto op = request_specialised(runtime_, kept.shape, nullptr, OwnLaunch::make);
      end(at, op ? std::nullopt : std::optional(op.error()));
    }
  }

  /// The shapes that failed, in the order that they were given in.
  std::vector<NotPrepared> take() {
    std::vector<NotPrepared> failed;
    for (std::size_t i = 0; i < faults_.size(); ++i) {
      if (faults_[i]) failed.push_back({text_of(i), *std::move(faults_[i])});
    }
    return failed;
  }

 private:
  /// What a shape has whose thread ended in the middle of it.
  static std::optional<Error> unfinished() {
    return Error{ErrorCode::kOutOfMemory, "no memory to prepare it", {}};
  }

  std::string text_of(std::size_t at) const { return specializer::to_text(all_[at]->shape); }

  void end(std::size_t at, std::optional<Error> fault) {
    const std::lock_guard lock(mutex_);
    ++done_;
    faults_[at] = std::move(fault);
    if (options_.progress) {
      options_.progress({done_, all_.size(), text_of(at), faults_[at] ? &*faults_[at] : nullptr});
    }
  }

  Runtime::State& runtime_;
  std::span<const std::shared_ptr<const KernelShapeState>> all_;
  const PrepareOptions& options_;
  std::atomic<std::size_t> next_{0};
  std::mutex mutex_;
  std::size_t done_ = 0;
  std::vector<std::optional<Error>> faults_;  ///< One a shape; none where it has its kernel.
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
      others.emplace_back([&preparation] {
        try {
          preparation.run();
        } catch (...) {
          // It would end the process; the shape in hand counts as not prepared.
        }
      });
    } catch (const std::system_error&) {
      break;  // Those that there are, and this one, do the work.
    }
  }
  preparation.run();
  others.clear();  // Joins.
  return preparation.take();
}

}  // namespace broach
