#include "cache/digest.hpp"

#include <xxhash.h>

#include <algorithm>
#include <memory>
#include <new>

namespace broach::cache {
namespace {

Digest canonical(XXH128_hash_t hash) {
  XXH128_canonical_t bytes;
  XXH128_canonicalFromHash(&bytes, hash);
  Digest digest;
  std::copy_n(bytes.digest, digest.size(), digest.begin());
  return digest;
}

struct FreeState {
  void operator()(XXH3_state_t* state) const noexcept { XXH3_freeState(state); }
};

}  // namespace

Digest digest_of(std::string_view bytes) {
  return canonical(XXH3_128bits(bytes.data(), bytes.size()));
}

Digest digest_of(std::string_view first, std::string_view second) {
  const std::unique_ptr<XXH3_state_t, FreeState> state(XXH3_createState());
  if (state == nullptr) throw std::bad_alloc();
  XXH3_128bits_reset(state.get());
  XXH3_128bits_update(state.get(), first.data(), first.size());
  XXH3_128bits_update(state.get(), second.data(), second.size());
  return canonical(XXH3_128bits_digest(state.get()));
}

}  // namespace broach::cache
