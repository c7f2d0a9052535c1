#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "broach/export.hpp"
#include "broach/kernel_info.hpp"
#include "broach/result.hpp"
#include "broach/sparse_rows.h"
#include "broach/types.hpp"

namespace broach {

class Runtime;
namespace runtime {
struct Operator;
}

/// How a sparse_rows kernel multiplies. The two are different sums of the same terms.
enum class SparseTile : std::uint8_t {
  kScalar,  ///< fp32 fma chains; every chip has the same bits.
  kMma,     ///< tile64 over selected keys; compress_ratio 1, 2, 4, 8 or 16.
};

/// The type of q and of the output.
enum class QueryDtype : std::uint8_t {
  kCache,  ///< The cache's 16 bits.
  kF32,
};

/// What one sparse_rows kernel is specialised for: attention over selected blocks of keys.
///
/// Shapes:  head_dim as in window_rows; gqa_ratio 1..16 query heads a KV head; compress_ratio keys
///          a block, 1..65536.
/// Source:  docs/families/sparse_rows.md.
struct SparseRowsShape {
  std::uint32_t head_dim = 0;
  std::uint32_t gqa_ratio = 0;
  std::uint32_t compress_ratio = 0;
  SparseTile tile = SparseTile::kScalar;
  std::uint32_t part_count = 16;  ///< scalar: parts of a row's list of keys, 1..64.
  std::uint32_t p_parts = 3;      ///< mma: 16-bit parts that P enters P x V in, 1..3.
  KvLayout kv_layout;
  Dtype dtype = Dtype::kBf16;
  QueryDtype q_dtype = QueryDtype::kCache;
  Switch checked = Switch::kOff;  ///< Device-side checks of positions, slots, pages and block ids.

  friend bool operator==(const SparseRowsShape&, const SparseRowsShape&) = default;
};

/// What a launch works on: the C interface's struct (broach/sparse_rows.h) with its size, a scale
/// of 1, one count a row and zeros.
struct SparseRowsArgs : broach_sparse_rows_args {
  SparseRowsArgs() noexcept : broach_sparse_rows_args{} {
    size = sizeof(broach_sparse_rows_args);
    attention.scale = 1.0F;
    count_row_stride = 1;
  }
};

/// The operator of a shape: a small handle on a loaded kernel.
///
/// Threads: any. A launch looks nothing up, allocates nothing and takes no lock.
/// Owns:    shares the loaded module with the Runtime that made it.
class BROACH_API SparseRows {
 public:
  explicit SparseRows(std::shared_ptr<const runtime::Operator> op) noexcept;

  /// Bytes of scratch a launch of this many rows needs; SIZE_MAX where no number is enough.
  std::size_t workspace_bytes(std::int32_t rows, std::int32_t kv_heads) const noexcept;

  /// Launches on a stream of the device (null: its default stream).
  ///
  /// Errors:  kInvalidArgument naming the argument, its value and its bound; kDriver.
  Result<void> launch(const broach_sparse_rows_args& args, void* stream) const;

  SparseRowsShape shape() const noexcept;  ///< Without choices that change nothing.
  KernelInfo info() const;                 ///< Of what serves now.

 private:
  std::shared_ptr<const runtime::Operator> op_;
};

/// The operator of a shape on a runtime's device; the same one for the same shape.
/// `model_compress_ratio` is what the model's config states; `stream` is one that the caller may be
/// capturing, or null.
///
/// Errors:  kInvalidArgument when the shape contradicts the model; the shape's; kNotWarmed;
///          kCapturing when `stream` is capturing and the shape is not loaded yet; the compiler's;
///          kLimitExceeded.
BROACH_API Result<SparseRows> sparse_rows_operator(Runtime& runtime, const SparseRowsShape& shape,
                                                   std::uint32_t model_compress_ratio,
                                                   void* stream = nullptr);

/// Checks one row's selection in host memory, for callers that want to: the launch itself reads ids
/// on the device, where `checked` builds look at them.
///
/// Errors:  kInvalidArgument naming the id that is out of order, repeated or past the row.
BROACH_API Result<void> check_sparse_selection(std::uint32_t compress_ratio, std::int32_t position,
                                               std::span<const std::int32_t> blocks);

}  // namespace broach
