#include "tools/contract/prompt.hpp"

#include <fmt/format.h>

#include <span>
#include <utility>

namespace broach::contract {

Result<PromptCase> prompt_of(std::string name, const WindowRowsShape& shape, std::int32_t kv_heads,
                             const std::vector<PromptChunk>& chunks) {
  PromptCase made;
  made.name = std::move(name);
  made.recipe.shape = shape;
  made.recipe.kv_heads = kv_heads;
  if (shape.softcap == Switch::kOn) made.recipe.softcap = 50.0F;
  made.offsets.push_back(0);
  for (const PromptChunk& chunk : chunks) {
    const auto image = chunk.image;
    if (image && (image->first < 0 || image->last < image->first || image->last >= chunk.rows)) {
      return Error{ErrorCode::kInvalidArgument,
                   fmt::format("rows {}..{} cannot see each other: the chunk has rows 0..{}",
                               image->first, image->last, chunk.rows - 1),
                   ""};
    }
    for (std::int32_t row = 0; row < chunk.rows; ++row) {
      RowAt at{chunk.stream, chunk.position + row};
      if (image && row >= image->first && row <= image->last) {
        at.last = chunk.position + image->last;
      }
      made.recipe.rows.push_back(at);
    }
    made.offsets.push_back(static_cast<std::int32_t>(made.recipe.rows.size()));
  }
  return made;
}

Result<DeviceChunks> DeviceChunks::upload(runtime::Device& device, const DecodeProblem& problem,
                                          const std::vector<std::int32_t>& offsets) {
  DeviceChunks chunks(static_cast<std::int32_t>(offsets.size()) - 1);
  chunks.has_hi_ = !problem.last_keys.empty();
  std::vector<std::int32_t> positions;
  std::vector<std::int32_t> slots;
  for (std::size_t i = 0; i + 1 < offsets.size(); ++i) {
    positions.push_back(problem.positions[static_cast<std::size_t>(offsets[i])]);
    slots.push_back(problem.slots[static_cast<std::size_t>(offsets[i])]);
  }
  for (const std::vector<std::int32_t>* array :
       {&std::as_const(positions), &std::as_const(slots), &offsets, &problem.last_keys}) {
    auto copied = DeviceBytes::copy_of(device, std::as_bytes(std::span(*array)));
    if (!copied) return copied.error();
    chunks.arrays_.push_back(std::move(*copied));
  }
  return chunks;
}

Decoder DeviceChunks::decoder(std::function<Result<void>(const PromptArgs& args)> prompt) const {
  const auto array = [this](std::size_t i) {
    return static_cast<const std::int32_t*>(arrays_[i].data());
  };
  return {[](std::int32_t, std::int32_t, std::int32_t) { return std::size_t{0}; },
          [this, array, prompt = std::move(prompt)](const DecodeArgs& common) {
            PromptArgs args;
            args.common = common;
            args.common.positions = array(0);
            args.common.slots = array(1);
            args.offsets = array(2);
            args.hi = has_hi_ ? array(3) : nullptr;
            args.sequences = sequences_;
            return prompt(args);
          }};
}

}  // namespace broach::contract
