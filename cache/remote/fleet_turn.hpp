#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string_view>

#include "cache/remote/lease_keeper.hpp"
#include "cache/remote/peer.hpp"
#include "cache/reporter.hpp"

namespace broach::cache::remote {

/// How long a process waits for another machine's.
struct LeasePatience {
  std::chrono::milliseconds stage{300'000};  ///< A holder whose stage does not change.
  std::chrono::milliseconds whole{600'000};  ///< Any holders, whatever their stages say.
  std::chrono::seconds notice{5};            ///< Until people are told who is waited for.
};

/// How a process came out of asking for a key's lease.
enum class FleetTurn : std::uint8_t {
  kServed,  ///< `look` found the object: there is nothing to make.
  kMine,    ///< The keeper holds the lease: release it when the object is stored, or will not be.
  kAlone,   ///< Make a copy without one: the board does not answer, or its holder does not move.
};

/// Waits until this process has a key's lease, or need not have it. Waiting follows the holder: it
/// ends when the object is there, and when the holder ends, does not move, or will not store.
///
/// `look` fetches the object; `stage` is told whom this process waits for.
FleetTurn take_fleet_turn(const KeyRecord& key, Peer& board, LeaseKeeper& keeper,
                          Reporter& reporter, const LeasePatience& patience,
                          const std::function<bool()>& look,
                          const std::function<void(std::string_view)>& stage);

}  // namespace broach::cache::remote
