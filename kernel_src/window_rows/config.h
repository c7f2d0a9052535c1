#pragma once

// What a window_rows kernel is compiled with. A rendered source initialises one Config, `kConfig`,
// and includes one kernel, whose headers read it:
//
//   #include "window_rows/config.h"
//   namespace broach::window_rows {
//   constexpr Config kConfig{.arith = Arith::kTile64, .head_dim = 256, ...};
//   }
//   #include "window_rows/tile64_decode.cuh"
//
// A generic kernel reads window, ratio and layout from its parameters, which changes no bit of any
// result.

#include "attention/kv_pipeline.cuh"
#include "attention/softmax.cuh"
#include "window_rows/geometry.h"

namespace broach::window_rows {

using attention::Layout;

/// docs/families/window_rows.md has each one's mathematics.
enum class Arith : int { kChunk256, kTile64, kTile64Ex2, kMma32 };

/// Faults that the contract plants to see its gates turn red; kNone in every served kernel.
enum class Control : int {
  kNone,
  kWindowEarly,       ///< The window starts one key early.
  kUnmaskedBlock,     ///< chunk256: keys behind the row's end, in its last chunk, are not masked.
  kRatioOffByOne,     ///< Query heads find their KV head as if there were one more to each.
  kPageOffByOne,      ///< The next page table entry is read.
  kRoundingDropped,   ///< chunk256: runs are added up without a rounding between them.
  kRescaleDropped,    ///< Tiles or chunks join without their exponential of the maximum.
  kCombineReversed,   ///< Tiles are combined from the last to the first.
  kPRounded,          ///< P is rounded to 16 bits before anything is made of it.
  kLowHalfDropped,    ///< P enters P x V as its high half alone.
  kHiIgnored,         ///< Prefill rows stop at their own position.
  kSinkLeftOut,       ///< The sink does not join the denominator.
  kOutputTowardZero,  ///< The output is rounded toward zero.
  kRerunDropped,      ///< A non-finite output is not computed again in float64.
  kWholeBlockRerun,   ///< One non-finite output re-runs every row and head of its block.
};

struct Config {
  // The shape.
  Arith arith = Arith::kTile64;
  int head_dim = 0;
  int ratio = 0;   ///< Query heads a KV head; the most that a generic kernel serves.
  int window = 0;  ///< 0: none.
  Layout layout = Layout::kLinear;
  int layout_length = 0;  ///< The ring's or the page's; 0 for a linear cache.
  Half dtype = Half::kBf16;
  bool p32 = false;
  bool softcap = false;
  bool sinks = false;
  bool checked = false;
  bool generic = false;
  Control control = Control::kNone;
  // The geometry of kernels made of MMA steps (specializer/window_rows).
  int tile_keys = 0;
  int stage_dims = 0;  ///< Dims of a KV stage.
  int stages = 0;
  bool swizzled = false;  ///< Whether KV stages are swizzled: warpgroups multiply.
  int copy_rows = 0;      ///< Keys of a tensor copy; 0 where threads copy.
  int warps = 0;          ///< Of a block.
  int rows = 0;           ///< Of a prefill block.
  int head_blocks = 0;    ///< Of a decode block: query heads in blocks of 8 columns.
  int shared_bytes = 0;   ///< Dynamic shared memory.

  constexpr bool has(Control fault) const { return control == fault; }
  constexpr int threads() const { return warps * 32; }

  constexpr attention::KvConfig kv() const {
    return {layout, layout_length, generic, checked, has(Control::kPageOffByOne)};
  }
  constexpr attention::SoftmaxConfig softmax() const {
    return {dtype,
            arith == Arith::kTile64Ex2 ? attention::Exponential::kEx2
                                       : attention::Exponential::kPortable,
            p32,
            softcap,
            sinks,
            has(Control::kPRounded),
            has(Control::kLowHalfDropped),
            has(Control::kSinkLeftOut),
            has(Control::kRescaleDropped)};
  }
  constexpr attention::PipelineConfig pipeline() const {
    return {kv(),
            head_dim,
            tile_keys,
            stage_dims,
            stages,
            swizzled,
            arith != Arith::kChunk256 && rows > 0 && has(Control::kCombineReversed)
                ? attention::TileOrder::kDown
                : attention::TileOrder::kUp};
  }
};

/// What every kernel takes for granted; rendered as `static_assert(CheckedConfig<kConfig>::kOk)`.
template <Config kConfig>
struct CheckedConfig {
  static_assert(kConfig.head_dim >= 64 && kConfig.head_dim <= 512 && kConfig.head_dim % 16 == 0,
                "head_dim is made of whole MMA steps");
  static_assert(kConfig.generic || kConfig.ratio > 0, "a ratio, or a generic kernel's own");
  static_assert(kConfig.layout == Layout::kLinear || kConfig.layout_length > 0,
                "rings and pages have a length");
  static_assert(attention::kRowPad == kRowPadElems, "the renderer knows the padding");
  static constexpr bool kMma = kConfig.arith != Arith::kChunk256;
  static_assert(!kMma || kConfig.tile_keys ==
                             (kConfig.arith == Arith::kMma32 ? kMma32Keys : kTile64Keys),
                "a tile's keys are its arithmetic's");
  static_assert(!kMma || kConfig.head_dim % kConfig.stage_dims == 0, "stages fill a tile's K");
  static_assert(!kMma || (kConfig.stages >= 2 && kConfig.warps % 4 == 0), "copies overlap MMAs");
  static_assert(!kMma || (kConfig.rows > 0) != (kConfig.head_blocks > 0), "prefill or decode");
  static_assert(!kConfig.swizzled || kConfig.stage_dims % kSwizzleColumns == 0,
                "swizzled tiles are whole");
  static constexpr bool kOk = true;
};

}  // namespace broach::window_rows
