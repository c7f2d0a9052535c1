#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/contract/inputs.hpp"

namespace broach::contract {

/// Which other kernels have to give a case's bits: every layout and the generic kernel, or, where
/// another case of the same kind tries the layouts, the generic kernel alone.
enum class Twins : std::uint8_t { kAll, kGeneric };

/// A named problem that the family has to serve.
struct DecodeCase {
  std::string name;
  DecodeRecipe recipe;
  Twins twins = Twins::kAll;
};

/// Whole problems for a chip, or the same ones cut to what the host target computes in seconds.
enum class CaseSize : std::uint8_t { kFull, kCut };

/// The Gemma-4-like 12B sliding-window decode: 16 query heads over 8 KV heads of 256, window 1024
/// in a ring of 1536, three streams whose rings have wrapped.
DecodeCase gemma_decode(std::int32_t rows, CaseSize size, Arith arith = Arith::kChunk256);

/// Every decode that the family's contract names as served.
std::vector<DecodeCase> served_decodes(CaseSize size, Arith arith = Arith::kChunk256);

/// Small ragged decodes: every head_dim, every ratio of the contract, both types, every layout,
/// and key counts one below, at and one above each edge of the arithmetic.
std::vector<DecodeCase> ragged_decodes(Arith arith = Arith::kChunk256);

/// A decode of a shape that a user named, with inputs like real ones.
DecodeCase made_decode(const WindowRowsShape& shape, std::int32_t rows, std::int32_t kv_heads,
                       std::int32_t position);

}  // namespace broach::contract
