#include "tools/contract/window_rows/launch.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

namespace broach::contract::window_rows {
namespace {

template <class T>
std::span<const std::byte> bytes_of(const std::vector<T>& from) {
  return std::as_bytes(std::span(from));
}

std::size_t no_workspace(std::int32_t /*rows*/, std::int32_t /*kv_heads*/,
                         std::int32_t /*max_keys*/) {
  return 0;
}

}  // namespace

Decoder decoder_of(WindowRowsDecode op, void* stream) {
  return {
      [op](std::int32_t rows, std::int32_t kv_heads, std::int32_t max_keys) {
        return op.workspace_bytes(rows, kv_heads, max_keys);
      },
      [op, stream](const broach_window_rows_decode_args& args) { return op.launch(args, stream); },
      {}};
}

Decoder decoder_of(WindowRowsPrefill op, void* stream) {
  return {no_workspace, {}, [op, stream](const broach_window_rows_prefill_args& args) {
            return op.launch(args, stream);
          }};
}

Decoder decoder_of(std::shared_ptr<const runtime::DecodeLaunch> launch) {
  return {[launch](std::int32_t rows, std::int32_t kv_heads, std::int32_t max_keys) {
            return launch->workspace_bytes(rows, kv_heads, max_keys);
          },
          [launch](const broach_window_rows_decode_args& args) {
            return launch->launch(args, nullptr);
          },
          {}};
}

Decoder decoder_of(std::shared_ptr<const runtime::PrefillLaunch> launch) {
  return {no_workspace, {}, [launch](const broach_window_rows_prefill_args& args) {
            return launch->launch(args, nullptr);
          }};
}

Result<DeviceProblem> DeviceProblem::upload(runtime::Device& device, const Problem& problem) {
  DeviceProblem uploaded(device);
  // A prefill's positions and slots have an entry a sequence, its first row's.
  std::vector<std::int32_t> positions = problem.positions;
  std::vector<std::int32_t> slots = problem.slots;
  std::vector<std::int32_t> hi;
  if (problem.is_prefill()) {
    for (std::size_t i = 0; i + 1 < problem.offsets.size(); ++i) {
      const auto row = static_cast<std::size_t>(problem.offsets[i]);
      positions[i] = problem.positions[row];
      slots[i] = problem.slots[row];
    }
    positions.resize(problem.offsets.size() - 1);
    slots.resize(positions.size());
    if (problem.passes_hi) hi = problem.last_keys;
  }
  const std::span<const std::byte> inputs[] = {
      bytes_of(problem.q), bytes_of(problem.k),       bytes_of(problem.v),
      bytes_of(slots),     bytes_of(positions),       bytes_of(problem.page_table),
      bytes_of(hi),        bytes_of(problem.offsets), bytes_of(problem.sinks)};
  for (const std::span<const std::byte> input : inputs) {
    auto copied = DeviceBytes::copy_of(device, input);
    if (!copied) return copied.error();
    uploaded.inputs_.push_back(std::move(*copied));
  }
  auto out = GuardedBytes::of_size(device, problem.out_elems() * sizeof(std::uint16_t));
  if (!out) return out.error();
  uploaded.out_.emplace(std::move(*out));

  const auto integers = [&](std::size_t i) {
    return static_cast<const std::int32_t*>(uploaded.inputs_[i].data());
  };
  ProblemArgs& args = uploaded.args_;
  args = problem.sizes();
  args.attention.q = uploaded.inputs_[0].data();
  args.cache.k = uploaded.inputs_[1].data();
  args.cache.v = uploaded.inputs_[2].data();
  args.slots = integers(3);
  args.positions = integers(4);
  if (!problem.page_table.empty()) args.cache.page_table = integers(5);
  if (!hi.empty()) args.hi = integers(6);
  if (problem.is_prefill()) {
    args.offsets = integers(7);
    args.sequences = problem.sequences();
  }
  if (!problem.sinks.empty()) {
    args.attention.sinks = static_cast<const float*>(uploaded.inputs_[8].data());
  }
  args.attention.out = uploaded.out_->data();

  uploaded.sizes_.shape = problem.shape;
  uploaded.sizes_.rows = problem.rows;
  uploaded.sizes_.kv_heads = problem.kv_heads;
  uploaded.sizes_.out_row_stride = problem.out_row_stride;
  uploaded.sizes_.out_head_stride = problem.out_head_stride;
  return uploaded;
}

Result<ProblemArgs> DeviceProblem::args(const Decoder& decoder) {
  const std::size_t needed =
      decoder.workspace_bytes(args_.attention.rows, args_.cache.kv_heads, args_.max_keys);
  if (!workspace_ || workspace_->size() != needed) {
    auto workspace = GuardedBytes::of_size(*device_, needed);
    if (!workspace) return workspace.error();
    workspace_.emplace(std::move(*workspace));
  }
  args_.workspace = workspace_->data();
  args_.workspace_bytes = needed;
  return args_;
}

Result<void> DeviceProblem::launch(const Decoder& decoder, const ProblemArgs& args) const {
  return args.sequences > 0 ? decoder.prefill(args.prefill()) : decoder.decode(args.decode());
}

Result<std::vector<std::uint16_t>> DeviceProblem::run(const Decoder& decoder, Poison poison) {
  auto ready = args(decoder);
  if (!ready) return ready.error();
  for (GuardedBytes* const written : {&*out_, &*workspace_}) {
    if (auto poisoned = written->poison(poison); !poisoned) return poisoned.error();
  }
  if (auto launched = launch(decoder, *ready); !launched) return launched.error();
  if (auto done = device_->synchronize(nullptr); !done) return done.error();

  if (auto whole = out_->check_guard("outputs"); !whole) return whole.error();
  if (auto whole = workspace_->check_guard("workspace"); !whole) return whole.error();
  std::vector<std::uint16_t> out(sizes_.out_elems());
  if (auto copied = out_->read(std::as_writable_bytes(std::span(out))); !copied) {
    return copied.error();
  }
  if (auto whole = check_padding(out, poison); !whole) return whole.error();
  return out;
}

Result<void> DeviceProblem::check_padding(std::span<const std::uint16_t> out, Poison poison) const {
  std::vector<bool> is_output(out.size());
  for (std::int32_t row = 0; row < sizes_.rows; ++row) {
    for (std::int32_t head = 0; head < sizes_.heads(); ++head) {
      const auto from = is_output.begin() + sizes_.out_at(row, head);
      std::fill(from, from + sizes_.head_dim(), true);
    }
  }
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (is_output[i] || out[i] == static_cast<std::uint16_t>(poison)) continue;
    return Error{ErrorCode::kInternal,
                 fmt::format("the kernel wrote element {} of the outputs, which is padding", i),
                 ""};
  }
  return {};
}

}  // namespace broach::contract::window_rows
