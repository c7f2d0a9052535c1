#include "cache/signature.hpp"

#include <sodium.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include <fmt/core.h>

#include "cache/wire.hpp"

namespace broach::cache {
namespace {

constexpr std::string_view kMagic = "BROACHSG";
constexpr std::uint32_t kVersion = 1;

static_assert(sizeof PublicKey::bytes == crypto_sign_PUBLICKEYBYTES);
static_assert(sizeof Signature::bytes == crypto_sign_BYTES);
static_assert(std::tuple_size_v<StrongDigest> == crypto_generichash_BYTES);

const unsigned char* data_of(std::span<const std::byte> bytes) {
  return reinterpret_cast<const unsigned char*>(bytes.data());
}

// Without randomness no key can be made, and nothing that was made before can be trusted either.
void start_sodium() {
  static const bool started = sodium_init() >= 0;
  if (!started) std::abort();
}

std::string_view name_of(Signed kind) { return kind == Signed::kObject ? "object" : "bundle"; }

// What Ed25519 signs. The words in front keep a key's other uses, and our own kinds, apart.
std::string message_of(Signed kind, std::span<const std::byte> bytes) {
  std::array<unsigned char, crypto_generichash_BYTES_MAX> digest;
  crypto_generichash(digest.data(), digest.size(), data_of(bytes), bytes.size(), nullptr, 0);
  std::string message = fmt::format("broach signature 1 {}\n", name_of(kind));
  message.append(reinterpret_cast<const char*>(digest.data()), digest.size());
  return message;
}

// A key pair's secret half as libsodium wants it, wiped when it has been used.
struct ExpandedKey {
  std::array<unsigned char, crypto_sign_SECRETKEYBYTES> secret{};
  std::array<unsigned char, crypto_sign_PUBLICKEYBYTES> open{};

  explicit ExpandedKey(std::span<const std::uint8_t, 32> seed) {
    crypto_sign_seed_keypair(open.data(), secret.data(), seed.data());
  }
  ~ExpandedKey() { sodium_memzero(secret.data(), secret.size()); }
  ExpandedKey(const ExpandedKey&) = delete;
  ExpandedKey& operator=(const ExpandedKey&) = delete;
};

template <std::size_t Size>
void append(std::string& out, const std::array<std::uint8_t, Size>& bytes) {
  out.append(reinterpret_cast<const char*>(bytes.data()), Size);
}

template <std::size_t Size>
bool take(Reader& reader, std::array<std::uint8_t, Size>& out) {
  const auto bytes = reader.bytes(Size);
  if (!bytes) return false;
  std::transform(bytes->begin(), bytes->end(), out.begin(),
                 [](char c) { return static_cast<std::uint8_t>(c); });
  return true;
}

}  // namespace

StrongDigest strong_digest_of(std::span<const std::byte> bytes) {
  start_sodium();
  StrongDigest digest;
  crypto_generichash(digest.data(), digest.size(), data_of(bytes), bytes.size(), nullptr, 0);
  return digest;
}

std::string SignerId::hex() const {
  std::string out;
  for (const std::uint8_t byte : bytes) out += fmt::format("{:02x}", byte);
  return out;
}

SignerId PublicKey::id() const {
  const StrongDigest digest = strong_digest_of(std::as_bytes(std::span(bytes)));
  SignerId id;
  std::copy_n(digest.begin(), id.bytes.size(), id.bytes.begin());
  return id;
}

std::vector<std::byte> encode(const Signature& signature) {
  std::string text(kMagic);
  append_u32(text, kVersion);
  append_u32(text, ~kVersion);
  append(text, signature.signer.bytes);
  append(text, signature.bytes);
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

Result<Signature> decode_signature(std::span<const std::byte> bytes) {
  if (bytes.size() != kSignatureBytes) {
    return Error{
        ErrorCode::kDamaged,
        fmt::format("a signature has {} bytes; this one has {}", kSignatureBytes, bytes.size()),
        ""};
  }
  Reader reader({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  if (reader.bytes(kMagic.size()) != kMagic) {
    return Error{ErrorCode::kDamaged, "the magic number is not a signature's", ""};
  }
  const std::uint32_t version = reader.u32().value_or(0);
  if (reader.u32() != ~version) {
    return Error{ErrorCode::kDamaged, "the signature's format version is garbled", ""};
  }
  if (version != kVersion) {
    return Error{ErrorCode::kUnsupported,
                 fmt::format("the signature has format version {}; this build reads version {}",
                             version, kVersion),
                 "", Reason::kNewerFormat};
  }
  Signature signature;
  if (!take(reader, signature.signer.bytes) || !take(reader, signature.bytes)) {
    return Error{ErrorCode::kDamaged, "the signature is cut short", ""};
  }
  return signature;
}

Result<void> check_signature(Signed kind, std::span<const std::byte> bytes,
                             const Signature& signature, const PublicKey& key) {
  start_sodium();
  const std::string message = message_of(kind, bytes);
  const bool right =
      signature.signer == key.id() &&
      crypto_sign_verify_detached(signature.bytes.data(),
                                  reinterpret_cast<const unsigned char*>(message.data()),
                                  message.size(), key.bytes.data()) == 0;
  if (right) return {};
  return Error{ErrorCode::kDenied,
               fmt::format("the signature of key {} ({}) does not match: the {} was changed after "
                           "it was signed, or the signature is forged",
                           signature.signer.hex(), key.name, name_of(kind)),
               "", Reason::kForged};
}

SecretKey SecretKey::generate(std::string name) {
  start_sodium();
  std::array<std::uint8_t, 32> seed;
  randombytes_buf(seed.data(), seed.size());
  SecretKey key = from_seed(seed, std::move(name));
  sodium_memzero(seed.data(), seed.size());
  return key;
}

SecretKey SecretKey::from_seed(std::span<const std::uint8_t, 32> seed, std::string name) {
  start_sodium();
  SecretKey key;
  std::copy(seed.begin(), seed.end(), key.seed_.begin());
  const ExpandedKey expanded(seed);
  key.public_.bytes = expanded.open;
  key.public_.name = std::move(name);
  return key;
}

SecretKey::~SecretKey() { sodium_memzero(seed_.data(), seed_.size()); }

Signature SecretKey::sign(Signed kind, std::span<const std::byte> bytes) const {
  const std::string message = message_of(kind, bytes);
  const ExpandedKey expanded(seed_);
  Signature signature;
  signature.signer = public_.id();
  crypto_sign_detached(signature.bytes.data(), nullptr,
                       reinterpret_cast<const unsigned char*>(message.data()), message.size(),
                       expanded.secret.data());
  return signature;
}

}  // namespace broach::cache
