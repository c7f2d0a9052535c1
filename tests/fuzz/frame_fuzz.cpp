// A bundle's compressed frame and the object in it. The first two bytes are the size that the
// index would claim.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "cache/frame.hpp"
#include "cache/object.hpp"
#include "tests/fuzz/target.hpp"

BROACH_FUZZ_TARGET(frame) {
  using namespace broach::cache;
  if (size < 2) return 0;
  const std::uint64_t claimed = data[0] | (std::uint64_t{data[1]} << 8);
  const auto frame = broach::fuzz::as_bytes(data + 2, size - 2);
  const auto object = decompress(frame, claimed);
  const auto front = decompress_front(frame, claimed, static_cast<std::size_t>(claimed / 2));
  if (!object) return 0;
  if (object->size() != claimed) std::abort();
  if (front && (front->size() != claimed / 2 ||
                !std::equal(front->begin(), front->end(), object->begin()))) {
    std::abort();
  }
  (void)decode(*object).ok();
  return 0;
}
