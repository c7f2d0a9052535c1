#include "cache/signature.hpp"

#include "tests/cache/signing.hpp"
#include "tests/support/catch.hpp"

namespace broach::cache {
namespace {

using test::bytes_of;
using test::sample_signer;

}  // namespace

TEST_CASE("a signature holds for the bytes, the kind and the key it was made with",
          "[cache][signature]") {
  const SecretKey signer = sample_signer(1);
  const auto bytes = bytes_of("a compiled kernel");
  const Signature signature = signer.sign(Signed::kObject, bytes);
  CHECK(check_signature(Signed::kObject, bytes, signature, signer.public_key()));

  SECTION("not for any changed byte") {
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      auto changed = bytes;
      changed[i] ^= std::byte{1};
      const auto refused =
          check_signature(Signed::kObject, changed, signature, signer.public_key());
      REQUIRE_FALSE(refused);
      CHECK(refused.error().code == ErrorCode::kDenied);
      CHECK(refused.error().reason == Reason::kForged);
    }
  }
  SECTION("not for fewer or more bytes") {
    auto longer = bytes;
    longer.push_back(std::byte{0});
    CHECK_FALSE(check_signature(Signed::kObject, longer, signature, signer.public_key()));
    CHECK_FALSE(check_signature(Signed::kObject, {}, signature, signer.public_key()));
  }
  SECTION("not as another kind") {
    CHECK_FALSE(check_signature(Signed::kBundle, bytes, signature, signer.public_key()));
  }
  SECTION("not under another key, even when the signature claims that key's name") {
    const PublicKey& other = sample_signer(2).public_key();
    CHECK_FALSE(check_signature(Signed::kObject, bytes, signature, other));
    Signature renamed = signature;
    renamed.signer = other.id();
    CHECK_FALSE(check_signature(Signed::kObject, bytes, renamed, other));
  }
}

TEST_CASE("a seed always gives the same pair, and two made keys differ", "[cache][signature]") {
  // RFC 8032, 7.1, test 1: the seed and the public key it gives.
  const auto seed =
      test::from_hex<32>("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60");
  const auto expected =
      test::from_hex<32>("d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a");
  CHECK(SecretKey::from_seed(seed, "rfc").public_key().bytes == expected);
  CHECK(SecretKey::generate("a").public_key().bytes != SecretKey::generate("a").public_key().bytes);
}

TEST_CASE("a signature survives being written and read", "[cache][signature]") {
  const Signature signature = sample_signer(1).sign(Signed::kBundle, bytes_of("bundle"));
  auto encoded = encode(signature);
  REQUIRE(encoded.size() == kSignatureBytes);
  const auto read = decode_signature(encoded);
  REQUIRE(read);
  CHECK(*read == signature);

  SECTION("a wrong length is damage") {
    encoded.pop_back();
    CHECK(decode_signature(encoded).error().code == ErrorCode::kDamaged);
  }
  SECTION("a wrong magic number is damage") {
    encoded[0] ^= std::byte{1};
    CHECK(decode_signature(encoded).error().code == ErrorCode::kDamaged);
  }
  SECTION("a rotten version is damage, a written one is of a newer program") {
    encoded[8] = std::byte{2};
    CHECK(decode_signature(encoded).error().code == ErrorCode::kDamaged);
    encoded[12] = ~std::byte{2};
    CHECK(decode_signature(encoded).error().code == ErrorCode::kUnsupported);
  }
}

TEST_CASE("another implementation makes the same signature from the documented format",
          "[cache][signature]") {
  // Made with Python's hashlib and cryptography from docs/cache_format.md.
  const Signature signature = sample_signer(1).sign(Signed::kObject, bytes_of("golden"));
  CHECK(signature.signer.hex() == "c5e21ab1c9f6022d81c3b25e3436cb7f");
  CHECK(signature.bytes ==
        test::from_hex<64>("f5221c036eee9e71c1180bf9bde8d272943cded9595e93a9a84dc5a5834dd1fe"
                           "f7b77b03473773487a888816995982cc732d977ae7bfd776cc809d0749fcf902"));
}

}  // namespace broach::cache
