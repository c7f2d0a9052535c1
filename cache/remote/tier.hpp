#pragma once

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cache/cache.hpp"
#include "cache/remote/fleet_turn.hpp"
#include "cache/remote/lease_keeper.hpp"
#include "cache/remote/peer.hpp"
#include "cache/remote/upload_queue.hpp"
#include "cache/reporter.hpp"
#include "cache/signature.hpp"
#include "cache/trusted_keys.hpp"

namespace broach::cache::remote {

/// What remote values are judged and signed by. A key that signs is trusted: its holder could plant
/// anything anyway.
struct Credentials {
  TrustedKeys keys;
  std::optional<SecretKey> signing;  ///< Absent: nothing is uploaded.
};

class Tier;

/// Closes a tier, but not in a child of a fork: the threads to wait for are the parent's.
struct CloseTier {
  void operator()(Tier* tier) const noexcept;
};
using TierHandle = std::unique_ptr<Tier, CloseTier>;

/// All remotes of a cache: signed objects come from them, in order, and go to those that may be
/// written. No fault of a remote fails a call: it is counted, told once, and is a miss.
///
/// Threads: any. A child of a fork has no remotes.
class Tier {
 public:
  struct Found {
    Object object;
    Layer layer;
  };

  /// Opens what the options name, without talking to it; null when they name nothing.
  static TierHandle open(const CacheOptions& options, Credentials credentials, Reporter& reporter);

  /// Waits for uploads, for as long as the options allow; what is left then is dropped and counted.
  ~Tier();

  /// The first trusted object under the key.
  std::optional<Found> find(const KeyRecord& key);

  /// The right to make a key, and the duty to say how that ended.
  ///
  /// Threads: one at a time.
  class Turn {
   public:
    Turn() = default;
    Turn(Turn&& other) noexcept;
    Turn& operator=(Turn&& other) noexcept;
    ~Turn();  ///< Without a word nothing was stored.

    bool served() const noexcept { return served_; }
    void stage(std::string_view name);

    /// Sends the object to the remotes, without waiting; the lease ends when it has arrived.
    void upload(const Object& object);

   private:
    friend class Tier;
    Tier* tier_ = nullptr;
    std::optional<Key> lease_;
    bool served_ = false;
  };

  /// Waits until it is this process's turn among the fleet to make a key; `look` ends the wait.
  Turn take_turn(const KeyRecord& key, const std::function<bool()>& look,
                 const std::function<void(std::string_view)>& stage);

  /// Sends an object, without waiting, to the remotes that have none under its key.
  void share(const Object& object) { upload(object, Upload::Where::kWhereMissing, {}); }

  /// Waits until every upload has ended; false when that takes longer.
  bool drain(std::chrono::milliseconds at_most);

  std::vector<LayerStatus> layers() const;

  /// Asks each remote for a key that nobody has.
  std::vector<RemoteStatus> probe();

 private:
  struct Member {
    RemoteOptions options;
    Layer layer;
    std::unique_ptr<Peer> peer;  ///< Null: it cannot be opened.
    std::string why;             ///< Why it is not used, or not written.

    bool writable() const { return peer != nullptr && why.empty(); }
  };

  Tier(const CacheOptions& options, Credentials credentials, Reporter& reporter);

  Member open_member(const RemoteOptions& options) const;
  std::optional<Object> accepted(const Member& member, const KeyRecord& key,
                                 const std::string& value);
  void upload(const Object& object, Upload::Where where, std::function<void(Upload::Fate)> ended);
  Upload::Fate send(const Upload& upload, const std::stop_token& stop);
  bool here() const noexcept;

  friend struct CloseTier;

  Reporter& reporter_;
  const Credentials credentials_;
  const std::chrono::milliseconds drain_;
  const LeasePatience patience_;
  const pid_t owner_;
  std::vector<Member> members_;
  Peer* board_ = nullptr;  ///< The first that has leases and may be written.
  std::unique_ptr<LeaseKeeper> keeper_;
  std::unique_ptr<UploadQueue> queue_;  ///< Ends first: its uploads end leases.
};

}  // namespace broach::cache::remote
