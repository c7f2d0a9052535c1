#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "broach/result.hpp"
#include "broach/runtime.hpp"
#include "runtime/device.hpp"
#include "tools/contract/inputs.hpp"
#include "tools/contract/launch.hpp"
#include "tools/contract/problem.hpp"

namespace broach::contract {

/// Rows of a chunk that see each other, as an image's do: each up to the last of them.
///
/// Units:   rows of the chunk, from 0, both included.
struct ImageRows {
  std::int32_t first = 0;
  std::int32_t last = 0;
};

/// A chunk of one sequence.
struct PromptChunk {
  std::int32_t stream = 0;
  std::int32_t position = 0;  ///< Of its first row.
  std::int32_t rows = 1;
  std::optional<ImageRows> image;
};

/// A named prompt launch: the rows of its chunks, one after another.
struct PromptCase {
  std::string name;
  DecodeRecipe recipe;                ///< Its rows are the chunks'.
  std::vector<std::int32_t> offsets;  ///< First row of each chunk, then the row count.
};

/// Errors:  kInvalidArgument for image rows that the chunk does not have.
Result<PromptCase> prompt_of(std::string name, const WindowRowsShape& shape, std::int32_t kv_heads,
                             const std::vector<PromptChunk>& chunks);

/// A prompt's chunks on a device: what its launch takes beside a decode's arguments.
///
/// Owns:    the arrays; the device outlives them.
class DeviceChunks {
 public:
  /// Shapes:  offsets as PromptCase's; the problem's rows in the chunks' order.
  static Result<DeviceChunks> upload(runtime::Device& device, const DecodeProblem& problem,
                                     const std::vector<std::int32_t>& offsets);

  /// A launch of the chunks for DeviceProblem. Lives no longer than this object.
  Decoder decoder(std::function<Result<void>(const PromptArgs& args)> prompt) const;

 private:
  explicit DeviceChunks(std::int32_t sequences) noexcept : sequences_(sequences) {}

  std::int32_t sequences_;
  bool has_hi_ = false;
  std::vector<DeviceBytes> arrays_;  // positions, slots, offsets, hi
};

}  // namespace broach::contract
