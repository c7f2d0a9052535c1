#include "cache/remote/envelope.hpp"

#include <cstddef>
#include <span>
#include <utility>

namespace broach::cache::remote {
namespace {

// The cause that a counter is named by, where the error has no reason of its own.
Error refusal(Error error) {
  if (error.code == ErrorCode::kDamaged) error.detail = "damaged";
  return error;
}

}  // namespace

std::string seal(const Object& object, const SecretKey& key) {
  const std::vector<std::byte> bytes = encode(object);
  const std::vector<std::byte> signature = encode(key.sign(Signed::kObject, bytes));
  std::string value;
  value.reserve(signature.size() + bytes.size());
  value.append(reinterpret_cast<const char*>(signature.data()), signature.size());
  value.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return value;
}

Result<Object> unseal(std::string_view value, const KeyRecord& key, const TrustedKeys& trusted) {
  if (value.size() < kSignatureBytes) {
    return Error{ErrorCode::kDamaged, "the value is shorter than a signature", "damaged"};
  }
  const auto bytes = std::as_bytes(std::span(value));
  const auto signature = decode_signature(bytes.first(kSignatureBytes));
  if (!signature) return refusal(signature.error());
  const auto signed_bytes = bytes.subspan(kSignatureBytes);
  if (auto by = trusted.verify(Signed::kObject, signed_bytes, *signature); !by) return by.error();
  auto object = decode(signed_bytes);
  if (!object) return refusal(object.error());
  if (object->key != key) {
    return Error{ErrorCode::kDamaged,
                 "the value is signed, and is the object of " + object->key.key.hex(), "damaged"};
  }
  return object;
}

}  // namespace broach::cache::remote
