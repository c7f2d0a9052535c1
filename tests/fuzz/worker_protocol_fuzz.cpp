#include <cstdlib>

#include "specializer/compile/protocol.hpp"
#include "tests/fuzz/target.hpp"

// Whatever decodes must encode to a body that decodes to the same message.
BROACH_FUZZ_TARGET(worker_protocol) {
  using namespace broach::specializer::rtc;
  const std::string_view bytes = broach::fuzz::as_text(data, size);
  if (size == kHeaderBytes) {
    const auto length = body_bytes(bytes);
    if (length && (*length == 0 || *length > kMaxBodyBytes)) std::abort();
  }
  const auto message = decode(bytes);
  if (!message) return 0;
  const auto frame = encode(*message);
  if (!frame) std::abort();
  const auto again = decode(std::string_view(*frame).substr(kHeaderBytes));
  if (!again || !(*again == *message)) std::abort();
  return 0;
}
