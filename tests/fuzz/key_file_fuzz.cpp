// Key files and signatures: what others hand over to be trusted or checked.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "cache/key_file.hpp"
#include "cache/signature.hpp"
#include "tests/fuzz/target.hpp"

BROACH_FUZZ_TARGET(key_file) {
  using namespace broach::cache;
  const auto text = broach::fuzz::as_text(data, size);
  const auto bytes = broach::fuzz::as_bytes(data, size);
  // There is one form of each: what is taken is what would be written.
  if (const auto key = parse_public_key(text); key && to_text(*key) != text) std::abort();
  if (const auto key = parse_secret_key(text); key && to_text(*key) != text) std::abort();
  if (const auto signature = decode_signature(bytes)) {
    const auto again = encode(*signature);
    if (!std::equal(again.begin(), again.end(), bytes.begin(), bytes.end())) std::abort();
    static const PublicKey key =
        SecretKey::from_seed(std::array<std::uint8_t, 32>{}, "x").public_key();
    // Nobody forges a signature of this key by chance.
    if (check_signature(Signed::kObject, bytes, *signature, key)) std::abort();
  }
  return 0;
}
