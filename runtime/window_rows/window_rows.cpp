#include "runtime/window_rows/decode_args.hpp"
#include "runtime/window_rows/prefill_args.hpp"
#include "runtime/window_rows/state.hpp"

namespace broach {

std::size_t WindowRows::workspace_bytes(std::int32_t rows, std::int32_t kv_heads,
                                        std::int32_t max_keys) const noexcept {
  return state_->serving.load(std::memory_order_acquire)->workspace_bytes(rows, kv_heads, max_keys);
}

Result<void> WindowRows::decode(const DecodeArgs& args, void* stream) const {
  const State& state = *state_;
  if (auto ok = runtime::check_decode_args(state.shape, args); !ok) return ok;
  if (args.rows == 0) return {};
  const runtime::DecodeLaunch& serving = *state.serving.load(std::memory_order_acquire);
  const std::size_t workspace =
      serving.workspace_bytes(args.rows, args.kv_heads, runtime::key_bound(args));
  if (auto ok = runtime::check_workspace(args, workspace); !ok) return ok;
  return serving.launch(args, stream);
}

Result<void> WindowRows::prefill(const PrefillArgs& args, void* stream) const {
  const State& state = *state_;
  if (auto ok = runtime::check_prefill_args(state.shape, args); !ok) return ok;
  if (args.common.rows == 0) return {};
  return state.serving.load(std::memory_order_acquire)->launch_prefill(args, stream);
}

const WindowRowsShape& WindowRows::shape() const noexcept { return state_->shape; }

}  // namespace broach
