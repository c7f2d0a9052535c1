#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "runtime/window_rows/decode_launch.hpp"

namespace broach::runtime {

/// Which CTAs compute a row's tiles, and who combines them (split-KV). No choice changes a bit of
/// the output.
struct Tile64Schedule {
  enum class Combine : std::uint8_t {
    kInCta,      ///< One CTA a (row, KV head), with an online softmax; no workspace.
    kByLastCta,  ///< CTAs leave partials; the last of a row combines them.
    kByKernel,   ///< CTAs leave partials for a second kernel, one CTA a query head.
  };
  Combine combine = Combine::kInCta;
  std::uint32_t tiles_a_split = 1;  ///< Tiles a CTA; all of them under kInCta.

  friend bool operator==(const Tile64Schedule&, const Tile64Schedule&) = default;
};

/// Tiles of 64 keys at absolute positions that one row can touch at most.
std::uint32_t tile64_max_tiles(std::uint32_t window, std::int32_t max_keys) noexcept;

/// The schedule of a decode on a chip of `multiprocessors`: one block a row where rows x KV heads
/// fill the chip, otherwise about two blocks a multiprocessor.
Tile64Schedule choose_tile64_schedule(std::uint32_t window, std::int32_t rows,
                                      std::int32_t kv_heads, std::int32_t max_keys,
                                      std::uint32_t multiprocessors) noexcept;

/// Scratch that a schedule needs: an arrival counter a (row, KV head); a maximum, a sum and
/// head_dim values a (row, query head, tile). 0 for kInCta.
///
/// Units:   bytes.
std::size_t tile64_workspace_bytes(const WindowRowsShape& shape, const Tile64Schedule& schedule,
                                   std::int32_t rows, std::int32_t kv_heads,
                                   std::int32_t max_keys) noexcept;

/// Launches tile64's decode plan with the schedule that `choose_tile64_schedule` picks, or with
/// `forced`.
///
/// `workspace_bytes` never shrinks as rows grow, although many rows need none: what is enough for
/// a batch is enough for each smaller one.
Result<std::unique_ptr<const DecodeLaunch>> make_tile64_launch(
    const WindowRowsShape& shape, const specializer::Plan& plan, Module& module,
    std::uint32_t multiprocessors, std::optional<Tile64Schedule> forced = std::nullopt);

}  // namespace broach::runtime
