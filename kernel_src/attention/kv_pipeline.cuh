#pragma once

// The keys and values of a block on their way through shared memory: for each tile, its K in KV
// stages of kTileKeys keys x stage_dims dims, then its V, in a ring of stages. Keys outside a range
// are zeros and are never read.

#include "attention/kv_address.cuh"
#include "common/platform.cuh"
#include "tiles/copy.cuh"
#include "tiles/swizzle.cuh"

namespace broach::attention {

/// In which order a block's tiles come. Down is a planted fault.
enum class TileOrder { kUp, kDown };

/// Padding of 16-bit rows in shared memory, in elements: with whole 16-dim units it makes every row
/// an odd number of 16-byte units, which keeps ldmatrix free of bank conflicts.
constexpr int kRowPad = 8;

struct PipelineConfig {
  KvConfig kv;
  int head_dim = 0;
  int tile_keys = 0;
  int stage_dims = 0;  ///< Dims of a KV stage; divides head_dim.
  int stages = 0;      ///< In shared memory.
  bool swizzled = false;
  TileOrder order = TileOrder::kUp;

  constexpr int stages_of_k() const { return head_dim / stage_dims; }  ///< Of a tile's K, or V.
  constexpr int stage_stride() const { return stage_dims + kRowPad; }  ///< Unless swizzled.
  constexpr int stage_elems() const { return tile_keys * (swizzled ? stage_dims : stage_stride()); }
};

/// Where element (key, column) of a KV stage lies, in elements from its start.
template <PipelineConfig kConfig>
BROACH_DEVICE constexpr int stage_at(int key, int column) {
  if constexpr (kConfig.swizzled) {
    return column / kSwizzleColumns * kConfig.tile_keys * kSwizzleColumns +
           swizzled_at(key, column % kSwizzleColumns);
  } else {
    return key * kConfig.stage_stride() + column;
  }
}

/// Copies the KV stages of one block's tiles; kThreads consecutive threads copy one.
///
/// Owns:    nothing; parameters outlive it.
template <PipelineConfig kConfig, int kThreads>
struct KvProducer {
  static constexpr int kStagesOfK = kConfig.stages_of_k();
  static constexpr int kTileKeys = kConfig.tile_keys;

  KvAddress<kConfig.kv> address;
  KeyRange present;
  int first_tile;  // to come
  int count;       // stages of this block

  BROACH_DEVICE KvProducer(const KvAddress<kConfig.kv>& kv, const KeyRange& present_keys, int first,
                           int last)
      : address(kv),
        present(present_keys),
        first_tile(kConfig.order == TileOrder::kUp ? first : last),
        count((last - first + 1) * 2 * kStagesOfK) {}

  /// The tile that comes i-th.
  BROACH_DEVICE int tile(int i) const {
    return kConfig.order == TileOrder::kUp ? first_tile + i : first_tile - i;
  }

  /// Issues the copies of KV stage `n`, which goes to `stage`.
  BROACH_DEVICE void copy(Thread thread, int n, unsigned short* stage) const {
    const int part = n % (2 * kStagesOfK);
    const bool is_k = part < kStagesOfK;
    const unsigned short* const base =
        (is_k ? address.k_head : address.v_head) + part % kStagesOfK * kConfig.stage_dims;
    const PositionStrides strides = is_k ? address.of_k : address.of_v;
    const int first_key = tile(n / (2 * kStagesOfK)) * kTileKeys;
    const int index = static_cast<int>(thread.index()) % kThreads;
    constexpr int kVectors = kTileKeys * kConfig.stage_dims / 8;
    if constexpr (kConfig.swizzled) {
      // Most tiles are all present and contiguous; the others are copied vector by vector, since
      // registers are short.
      if (present.first <= first_key && first_key + kTileKeys - 1 <= present.last &&
          address.are_contiguous(first_key, kTileKeys)) {
        copy_contiguous(index, base + address.offset(first_key, strides), strides.position, stage);
      } else {
        BROACH_ROLLED
        for (int vector = index; vector < kVectors; vector += kThreads) {
          copy_vector(vector, first_key, base, strides, stage);
        }
      }
    } else {
      BROACH_UNROLL
      for (int i = 0; i < (kVectors + kThreads - 1) / kThreads; ++i) {
        const int vector = i * kThreads + index;
        if (kVectors % kThreads != 0 && vector >= kVectors) break;
        copy_vector(vector, first_key, base, strides, stage);
      }
    }
  }

  /// Copies 8 values of a key, or zeros if it is not present.
  BROACH_DEVICE void copy_vector(int vector, int first_key, const unsigned short* base,
                                 const PositionStrides& strides, unsigned short* stage) const {
    constexpr int kVectors = kConfig.stage_dims / 8;
    const int key = first_key + vector / kVectors;
    const int column = vector % kVectors * 8;
    const bool is_present = present.holds(key);
    const int at = is_present ? key : present.last;
    copy_16_bytes(stage + stage_at<kConfig>(vector / kVectors, column),
                  base + address.offset(at, strides) + column, is_present);
  }

  /// Copies a tile's keys, `stride` elements apart from `first` on: two instructions a vector.
  BROACH_DEVICE void copy_contiguous(int index, const unsigned short* first, long long stride,
                                     unsigned short* stage) const {
    // Whole rows a pass where threads divide so, else 64 columns.
    constexpr int kRowUnits = kConfig.stage_dims / 8;
    constexpr bool kWhole = kThreads % kRowUnits == 0 && kThreads / kRowUnits % 8 == 0;
    constexpr int kUnits = kWhole ? kRowUnits : kSwizzleColumns / 8;
    constexpr int kRows = kThreads / kUnits;
    static_assert(kThreads % kUnits == 0 && kRows % 8 == 0 && kTileKeys % kRows == 0,
                  "the swizzle repeats");
    const int row = index / kUnits;
    const int column = index % kUnits * 8;
    first += row * stride + column;
    stage += stage_at<kConfig>(row, column);
    BROACH_ROLLED
    for (int part = 0; part < kConfig.stage_dims; part += kUnits * 8) {
      const unsigned short* from = first + part;
      BROACH_UNROLL
      for (int i = 0; i < kTileKeys / kRows; ++i) {
        copy_16_bytes(stage + part * kTileKeys + i * kRows * kSwizzleColumns, from, true);
        from += kRows * stride;
      }
    }
  }
};

/// The KV pipeline of a block whose threads all copy and meet at every stage.
///
/// Owns:    nothing; parameters and stages outlive it.
template <PipelineConfig kConfig, int kThreads>
struct KvPipeline {
  static constexpr int kStages = kConfig.stages;

  KvProducer<kConfig, kThreads> producer;
  unsigned short* stages;  // [kStages][stage_elems]
  int next = 0;            // to be issued
  int ready = 0;           // to be used

  BROACH_DEVICE KvPipeline(const KvProducer<kConfig, kThreads>& of_tiles, unsigned short* memory)
      : producer(of_tiles), stages(memory) {}

  /// Issues the first stages; with them go copies that the caller issued before.
  BROACH_DEVICE void start(Thread thread) {
    BROACH_ROLLED
    for (int i = 0; i < kStages - 1; ++i) issue(thread);
  }

  /// Issues the next stage, or nothing once all have been issued.
  BROACH_DEVICE void issue(Thread thread) {
    if (next < producer.count) {
      producer.copy(thread, next, stages + next % kStages * kConfig.stage_elems());
      ++next;
    }
    copy_commit();
  }

  /// Waits for the next stage in order; frees the one before.
  BROACH_DEVICE unsigned short* wait(Thread thread) {
    copy_wait<kStages - 2>();
    sync_block(thread);
    issue(thread);
    return stages + ready++ % kStages * kConfig.stage_elems();
  }
};

}  // namespace broach::attention
