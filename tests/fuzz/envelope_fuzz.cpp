// A remote's value: a signature and an object. Once as the bytes are, and, where they are an
// object once its digests fit, signed by a key that is trusted: that signer may be the one who
// means harm.
#include <array>
#include <cstdlib>
#include <span>
#include <string>

#include "cache/remote/envelope.hpp"
#include "tests/fuzz/seal.hpp"
#include "tests/fuzz/target.hpp"

BROACH_FUZZ_TARGET(envelope) {
  using namespace broach::cache;
  static const SecretKey signer = SecretKey::from_seed(std::array<std::uint8_t, 32>{1}, "made");
  static const TrustedKeys trusted = [] {
    TrustedKeys keys;
    keys.add(signer.public_key());
    return keys;
  }();
  static const KeyRecord wanted =
      KeyBuilder().field("family", "window_rows").field("target", "sm_90a").finish();
  const auto text = broach::fuzz::as_text(data, size);
  const auto raw = remote::unseal(text, wanted, trusted);
  if (raw && raw->key != wanted) std::abort();
  if (size < kSignatureBytes) return 0;
  const std::string sealed = broach::fuzz::seal(data + kSignatureBytes, size - kSignatureBytes);
  const auto object = decode(std::as_bytes(std::span(sealed)));
  if (!object) return 0;
  const std::string value = remote::seal(*object, signer);
  const auto back = remote::unseal(value, wanted, trusted);
  if (back.ok() != (object->key == wanted)) std::abort();
  if (back && !(*back == *object)) std::abort();
  if (remote::unseal(value, wanted, TrustedKeys())) std::abort();
  return 0;
}
