#include "cache/remote/tier.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <exception>
#include <filesystem>
#include <utility>

#include <fmt/core.h>

#include "cache/file.hpp"
#include "cache/remote/address.hpp"
#include "cache/remote/envelope.hpp"
#include "cache/remote/printable.hpp"
#include "cache/remote/remote.hpp"
#include "cache/trusted_path.hpp"

namespace broach::cache::remote {
namespace {

constexpr std::chrono::milliseconds kFirstByte{200};
constexpr std::chrono::milliseconds kDrain{2'000};
// A value is some hundred KiB: ten times the wait for its first byte carries it over a slow line.
constexpr int kWholeOverFirstByte = 10;
// Nobody waits for an upload: it may take as long without a byte as a look-up in all.
constexpr int kWriteOverRead = 15;

constexpr std::string_view kReadOnly = "it is only read, as the options say";
constexpr std::string_view kNoSigningKey =
    "it is only read: no signing key is named (BROACH_SIGNING_KEY)";
constexpr std::string_view kNoTrustedKey =
    "no key is trusted (BROACH_TRUSTED_KEYS), and nothing of a remote is used without a signature";

std::chrono::milliseconds or_default(std::chrono::milliseconds chosen,
                                     std::chrono::milliseconds otherwise) {
  return chosen.count() > 0 ? chosen : otherwise;
}

// Longer than any password or token, and short enough not to matter.
constexpr std::uint64_t kMaxSecretBytes = 64 * 1024;

// The file's first line: what wrote the file may have ended it with a newline. The file's name is
// never shown: somebody may have put the secret itself in its place.
Result<std::string> read_secret_file(const std::filesystem::path& path) {
  const auto refused = [](std::string_view why, const Error& cause) {
    return Error{cause.code,
                 fmt::format("the file that holds its secret (BROACH_REMOTE_TOKEN_FILE) {}", why),
                 cause.detail, cause.reason};
  };
  const auto file = open_trusted_file(path, {Trust::kInstalled, "secret file"});
  if (!file) {
    if (file.error().reason == Reason::kUnsafe) {
      return refused(
          "could be changed by others: it and every directory above it must be this "
          "user's or root's and not writable by others",
          file.error());
    }
    if (file.error().code == ErrorCode::kDamaged) {
      return refused("is not a regular file", file.error());
    }
    return refused(fmt::format("cannot be opened ({})", file.error().detail), file.error());
  }
  const auto size = static_cast<std::uint64_t>(file->status.st_size);
  if (size > kMaxSecretBytes) return refused("is too long for one", {ErrorCode::kIo, "", ""});
  const auto bytes = read_bytes(file->fd, 0, size, "the secret file");
  if (!bytes) return refused("cannot be read", bytes.error());
  std::string line(reinterpret_cast<const char*>(bytes->data()), bytes->size());
  line.resize(std::min(line.find('\n'), line.size()));
  if (line.empty()) return refused("is empty", {ErrorCode::kIo, "", ""});
  return line;
}

// curl opens it by itself, and would wait for a pipe.
bool is_regular_file(const std::string& path) {
  struct stat status {};
  return stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode);
}

}  // namespace

Tier::Tier(const CacheOptions& options, Credentials credentials, Reporter& reporter)
    : reporter_(reporter),
      credentials_(std::move(credentials)),
      drain_(or_default(options.upload_drain, kDrain)),
      patience_{compile_limit(options), 2 * compile_limit(options)},
      owner_(getpid()) {}

TierHandle Tier::open(const CacheOptions& options, Credentials credentials, Reporter& reporter) {
  if (options.remotes.empty()) return nullptr;
  if (credentials.signing) credentials.keys.add(credentials.signing->public_key());
  TierHandle tier(new Tier(options, std::move(credentials), reporter));
  for (const RemoteOptions& remote : options.remotes) {
    Member member = tier->open_member(remote);
    if (!member.why.empty() && member.why != kReadOnly) {
      reporter.tell_once("remote " + member.layer.name + member.why,
                         fmt::format("{}: {}", member.layer.name, member.why));
    }
    tier->members_.push_back(std::move(member));
  }
  for (Member& member : tier->members_) {
    if (tier->board_ == nullptr && member.writable() && member.peer->has_leases()) {
      tier->board_ = member.peer.get();
    }
  }
  if (tier->board_ != nullptr) {
    tier->keeper_ = std::make_unique<LeaseKeeper>(*tier->board_, LeaseKeeper::Terms{}, reporter);
  }
  tier->queue_ = std::make_unique<UploadQueue>(
      UploadQueue::Bounds{}, [raw = tier.get()](const Upload& upload, const std::stop_token& stop) {
        return raw->send(upload, stop);
      });
  return tier;
}

Tier::Member Tier::open_member(const RemoteOptions& options) const {
  Member member{options, {LayerKind::kRemote, "a remote"}, nullptr, ""};
  auto address = parse_address(options.url);
  if (!address) {
    member.why = address.error().message;
    return member;
  }
  member.layer.name = address->name;
  if (credentials_.keys.keys().empty()) {
    member.why = kNoTrustedKey;
    return member;
  }
  std::string secret = options.secret;
  if (!options.secret_file.empty()) {
    auto read = read_secret_file(options.secret_file);
    if (!read) {
      member.why = read.error().message;
      return member;
    }
    secret = std::move(*read);
  }
  // In a header line it would be a line of its own.
  if (std::any_of(secret.begin(), secret.end(), [](unsigned char c) { return c < 0x20; })) {
    member.why = "its secret holds a control character";
    return member;
  }
  if (!options.certificates.empty() && !is_regular_file(options.certificates)) {
    member.why = fmt::format("its file of authorities, {}, is not a regular file that can be read",
                             printable(options.certificates));
    return member;
  }
  auto opened = open_remote({std::move(*address), std::move(secret), options.certificates});
  if (!opened) {
    member.why = opened.error().message;
    return member;
  }
  const auto first_byte = or_default(options.first_byte, kFirstByte);
  Peer::Terms terms;
  terms.read = {first_byte, first_byte * kWholeOverFirstByte};
  terms.write = {terms.read.whole, terms.read.whole * kWriteOverRead};
  member.peer = std::make_unique<Peer>(std::move(*opened), terms, reporter_);
  if (options.use == RemoteUse::kReadOnly) {
    member.why = kReadOnly;
  } else if (!credentials_.signing) {
    member.why = kNoSigningKey;
  }
  return member;
}

void CloseTier::operator()(Tier* tier) const noexcept {
  if (tier->here()) delete tier;
}

Tier::~Tier() {
  (void)drain(drain_);
  const std::size_t left = queue_->close();
  if (left > 0) {
    try {
      reporter_.tell_once("remote_uploads_left",
                          fmt::format("{} objects had not reached the remotes as the cache closed; "
                                      "whoever needs them makes them again",
                                      left));
    } catch (const std::exception&) {
      // No memory for the words.
    }
  }
  for (std::size_t i = 0; i < left; ++i) reporter_.count("remote_upload_dropped");
}

// The threads that serve a tier are its owner's; a child has none of them.
bool Tier::here() const noexcept { return owner_ == getpid(); }

std::optional<Tier::Found> Tier::find(const KeyRecord& key) {
  if (!here()) return std::nullopt;
  for (const Member& member : members_) {
    if (member.peer == nullptr) continue;
    const auto value = member.peer->get(key);
    if (!value) continue;
    if (auto object = accepted(member, key, *value)) return Found{std::move(*object), member.layer};
  }
  return std::nullopt;
}

std::optional<Object> Tier::accepted(const Member& member, const KeyRecord& key,
                                     const std::string& value) {
  auto object = unseal(value, key, credentials_.keys);
  if (object) return std::move(*object);
  Error error = object.error();
  error.message = fmt::format("{}: the value of {} is not used: {}", member.layer.name,
                              key.key.hex(), error.message);
  reporter_.fault("remote_refused", error, "the object is made here");
  return std::nullopt;
}

Tier::Turn Tier::take_turn(const KeyRecord& key, const std::function<bool()>& look,
                           const std::function<void(std::string_view)>& stage) {
  Turn turn;
  if (!here()) return turn;
  turn.tier_ = this;
  if (board_ == nullptr) return turn;
  const FleetTurn came = take_fleet_turn(key, *board_, *keeper_, reporter_, patience_, look, stage);
  turn.served_ = came == FleetTurn::kServed;
  if (came == FleetTurn::kMine) turn.lease_ = key.key;
  return turn;
}

void Tier::upload(const Object& object, Upload::Where where,
                  std::function<void(Upload::Fate)> ended) {
  const bool wanted = std::any_of(members_.begin(), members_.end(),
                                  [](const Member& member) { return member.writable(); });
  if (!wanted || !here()) return;
  bool offered = false;
  try {
    Upload upload{object.key, seal(object, *credentials_.signing), where, ended};
    offered = queue_->offer(upload);
  } catch (const std::exception&) {
    // No memory for a copy, or no thread to send it: as good as a queue that is full.
  }
  if (offered) return;
  reporter_.count("remote_upload_dropped");
  reporter_.tell_once("remote_upload_dropped",
                      "the queue of uploads is full: some objects are not sent to the remotes");
  if (ended) ended(Upload::Fate::kLost);
}

Upload::Fate Tier::send(const Upload& upload, const std::stop_token& stop) {
  auto fate = Upload::Fate::kLost;
  for (const Member& member : members_) {
    if (!member.writable()) continue;
    if (upload.where == Upload::Where::kWhereMissing && member.peer->has(upload.key)) {
      reporter_.count("remote_had");
      continue;
    }
    const bool stored = member.peer->put(upload.key, upload.value, stop);
    reporter_.count(stored ? "remote_uploaded" : "remote_upload_failed");
    // The fleet looks where it agrees who makes what.
    if (stored && member.peer.get() == board_) fate = Upload::Fate::kStored;
  }
  return fate;
}

bool Tier::drain(std::chrono::milliseconds at_most) { return queue_->drain(at_most); }

std::vector<LayerStatus> Tier::layers() const {
  std::vector<LayerStatus> rows;
  for (const Member& member : members_) {
    LayerStatus row;
    row.layer = member.layer;
    row.usable = member.peer != nullptr;
    row.why = member.why;
    rows.push_back(std::move(row));
  }
  return rows;
}

std::vector<RemoteStatus> Tier::probe() {
  std::vector<RemoteStatus> rows;
  for (const Member& member : members_) {
    RemoteStatus row;
    row.layer = member.layer;
    row.writable = member.writable();
    row.why = member.why;
    if (member.peer != nullptr && here()) {
      row.leases = member.peer.get() == board_;
      const Breaker::State breaker = member.peer->breaker();
      row.breaker = breaker.mode == Breaker::Mode::kClosed ? "closed"
                    : breaker.mode == Breaker::Mode::kOpen ? "open"
                                                           : "probing";
      row.faults_in_a_row = breaker.faults;
      if (const auto latency = member.peer->probe()) {
        row.latency = *latency;
      } else {
        row.fault = latency.error().message;
      }
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

Tier::Turn::Turn(Turn&& other) noexcept
    : tier_(std::exchange(other.tier_, nullptr)),
      lease_(std::exchange(other.lease_, std::nullopt)),
      served_(other.served_) {}

Tier::Turn& Tier::Turn::operator=(Turn&& other) noexcept {
  std::swap(tier_, other.tier_);
  std::swap(lease_, other.lease_);
  std::swap(served_, other.served_);
  return *this;
}

Tier::Turn::~Turn() {
  if (lease_) tier_->keeper_->release(*lease_, LeaseKeeper::Outcome::kNotStored);
}

void Tier::Turn::stage(std::string_view name) {
  if (lease_) tier_->keeper_->stage(*lease_, name);
}

void Tier::Turn::upload(const Object& object) {
  if (tier_ == nullptr) return;
  std::function<void(Upload::Fate)> ended;
  if (lease_) {
    ended = [keeper = tier_->keeper_.get(), key = *lease_](Upload::Fate fate) {
      keeper->release(key, fate == Upload::Fate::kStored ? LeaseKeeper::Outcome::kStored
                                                         : LeaseKeeper::Outcome::kNotStored);
    };
    lease_.reset();
  }
  tier_->upload(object, Upload::Where::kEverywhere, std::move(ended));
}

}  // namespace broach::cache::remote
