#pragma once

#include <string_view>

#include "broach/window_rows.hpp"
#include "kernel_src/window_rows/params.h"
#include "runtime/attention/check_args.hpp"

namespace broach::runtime {

/// What the argument checks need of a shape, for messages that begin with `operation`.
inline AttentionShape attention_shape(const WindowRowsShape& shape,
                                      std::string_view operation) noexcept {
  return {operation,       shape.head_dim, shape.gqa_ratio, shape.window,
          shape.kv_layout, shape.softcap,  shape.sinks};
}

/// Fills in what the generic kernels read of a shape at run time.
inline void set_shape(BroachWindowRowsDecode& params, const WindowRowsShape& shape) noexcept {
  params.window = static_cast<int>(shape.window);
  params.gqa_ratio = static_cast<int>(shape.gqa_ratio);
  params.layout = static_cast<int>(shape.kv_layout.kind);
  params.layout_length = static_cast<int>(shape.kv_layout.length);
}

}  // namespace broach::runtime
