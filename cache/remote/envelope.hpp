#pragma once

#include <string>
#include <string_view>

#include "broach/result.hpp"
#include "cache/object.hpp"
#include "cache/signature.hpp"
#include "cache/trusted_keys.hpp"

namespace broach::cache::remote {

/// An object as a remote holds it: its signature, then its bytes.
///
/// Source:  docs/cache_format.md ("Remote values").
std::string seal(const Object& object, const SecretKey& key);

/// The object of a remote value. The signature is checked before a byte of the object is read.
///
/// Errors:  kDenied with reason kUntrusted or kForged; kDamaged with detail "damaged", also where
///          the object is another key's; kUnsupported with reason kNewerFormat.
Result<Object> unseal(std::string_view value, const KeyRecord& key, const TrustedKeys& trusted);

}  // namespace broach::cache::remote
