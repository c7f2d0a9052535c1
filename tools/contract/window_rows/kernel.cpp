#include "tools/contract/window_rows/kernel.hpp"

#include <utility>

#include "runtime/window_rows/decode_args.hpp"
#include "runtime/window_rows/prefill_args.hpp"
#include "specializer/window_rows/shape.hpp"

namespace broach::contract::window_rows {

Result<Kernel> Kernel::load(const Bench& bench, const WindowRowsShape& shape,
                            const specializer::Variant& variant, std::uint32_t spread_over) {
  auto served = specializer::serve(shape, bench.device->target());
  if (!served) return served.error();
  auto plan = specializer::plan(*served, variant);
  if (!plan) return plan.error();
  auto loaded = contract::load(bench, *plan);
  if (!loaded) return loaded.error();
  Kernel kernel;
  kernel.bench_ = bench;
  kernel.shape_ = specializer::typed_of<WindowRowsShape>(served->shape());
  kernel.plan_ = std::move(*plan);
  kernel.loaded_ = std::move(*loaded);
  if (kernel.shape_.form == Form::kPrefill) {
    auto launch = runtime::make_prefill_launch(kernel.shape_, kernel.plan_, *kernel.loaded_.module);
    if (!launch) return launch.error();
    kernel.prefill_ = std::move(*launch);
    return kernel;
  }
  auto launch =
      runtime::make_decode_launch(kernel.shape_, kernel.plan_, *kernel.loaded_.module,
                                  spread_over > 0 ? spread_over : bench.device->multiprocessors());
  if (!launch) return launch.error();
  kernel.decode_ = std::move(*launch);
  return kernel;
}

Decoder Kernel::decoder() const {
  if (prefill_ == nullptr) return decoder(decode_);
  return {[](std::int32_t, std::int32_t, std::int32_t) { return std::size_t{0}; },
          {},
          [this](const broach_window_rows_prefill_args& args) -> Result<void> {
            if (auto sound = runtime::check_prefill_args(shape_, args); !sound) return sound;
            return prefill_->launch(args, nullptr);
          }};
}

Decoder Kernel::decoder(std::shared_ptr<const runtime::DecodeLaunch> launch) const {
  return {[launch](std::int32_t rows, std::int32_t kv_heads, std::int32_t max_keys) {
            return launch->workspace_bytes(rows, kv_heads, max_keys);
          },
          [this, launch](const broach_window_rows_decode_args& args) -> Result<void> {
            if (auto sound = runtime::check_decode_args(shape_, args); !sound) return sound;
            return launch->launch(args, nullptr);
          },
          {}};
}

Result<Decoder> Kernel::decoder(const runtime::Tile64Schedule& schedule) const {
  auto launch = runtime::make_tile64_launch(shape_, plan_, *loaded_.module,
                                            bench_.device->multiprocessors(), schedule);
  if (!launch) return launch.error();
  return decoder(std::shared_ptr<const runtime::DecodeLaunch>(std::move(*launch)));
}

Result<std::vector<std::uint16_t>> Kernel::run(const Problem& problem, Poison poison) const {
  auto uploaded = DeviceProblem::upload(*bench_.device, problem);
  if (!uploaded) return uploaded.error();
  return uploaded->run(decoder(), poison);
}

}  // namespace broach::contract::window_rows
