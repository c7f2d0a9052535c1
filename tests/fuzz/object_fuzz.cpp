#include <cstdlib>
#include <span>
#include <string>

#include "cache/object.hpp"
#include "tests/fuzz/seal.hpp"
#include "tests/fuzz/target.hpp"

// Whatever decodes must encode to bytes that decode to the same object. Once as the bytes are, and
// once with digests that fit, as someone who means harm would write them.
BROACH_FUZZ_TARGET(object) {
  using namespace broach;
  (void)cache::decode(fuzz::as_bytes(data, size)).ok();
  const std::string sealed = fuzz::seal(data, size);
  const auto object = cache::decode(std::as_bytes(std::span(sealed)));
  if (!object) return 0;
  const auto again = cache::decode(cache::encode(*object));
  if (!again || !(*again == *object)) std::abort();
  return 0;
}
