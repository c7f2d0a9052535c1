#include "cache/remote/envelope.hpp"

#include "tests/cache/samples.hpp"
#include "tests/cache/signing.hpp"
#include "tests/support/catch.hpp"

namespace broach::cache::remote {
namespace {

using cache::test::sample_key;
using cache::test::sample_object;
using cache::test::sample_signer;

TrustedKeys trusting(const SecretKey& key) {
  TrustedKeys keys;
  keys.add(key.public_key());
  return keys;
}

}  // namespace

TEST_CASE("a sealed object is unsealed by those who trust its signer",
          "[cache][remote][envelope]") {
  const Object object = sample_object("sealed");
  const SecretKey signer = sample_signer(1);
  const std::string value = seal(object, signer);
  const auto back = unseal(value, object.key, trusting(signer));
  REQUIRE(back);
  CHECK(*back == object);
}

TEST_CASE("a value is refused by its cause, and no byte of it may change",
          "[cache][remote][envelope]") {
  const Object object = sample_object("sealed", 300);
  const SecretKey signer = sample_signer(1);
  const std::string value = seal(object, signer);
  const auto cause = [&](const std::string& bytes, const TrustedKeys& keys) {
    const auto back = unseal(bytes, object.key, keys);
    if (back) return std::string("none");
    const Error& error = back.error();
    return error.reason == Reason::kNone ? error.detail : std::string(name_of(error.reason));
  };
  CHECK(cause(value, trusting(sample_signer(2))) == "untrusted");
  CHECK(cause(value, TrustedKeys()) == "untrusted");
  CHECK(cause("", trusting(signer)) == "damaged");
  CHECK(cause(value.substr(0, kSignatureBytes), trusting(signer)) == "forged");
  CHECK(cause(value.substr(0, value.size() - 1), trusting(signer)) == "forged");
  CHECK(cause(value + "x", trusting(signer)) == "forged");
  for (std::size_t i = 0; i < value.size(); ++i) {
    std::string changed = value;
    changed[i] = static_cast<char>(changed[i] ^ 1);
    INFO("byte " << i);
    CHECK(cause(changed, trusting(signer)) != "none");
  }
}

TEST_CASE("an object that is signed and is another key's is refused", "[cache][remote][envelope]") {
  const SecretKey signer = sample_signer(1);
  const std::string value = seal(sample_object("other"), signer);
  const auto back = unseal(value, sample_key("wanted"), trusting(signer));
  REQUIRE_FALSE(back);
  CHECK(back.error().code == ErrorCode::kDamaged);
  CHECK(back.error().detail == "damaged");
}

}  // namespace broach::cache::remote
