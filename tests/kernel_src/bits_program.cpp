// Prints a digest of what the arithmetic probe computes on the host, for one compiler and its
// options: bits_test.cpp compiles it with several.
#include <cstdint>
#include <cstdio>

#include "probe/arithmetic.cuh"

int main() {
  std::uint64_t digest = 0xcbf29ce484222325;
  const auto mix = [&digest](std::uint64_t value) {
    digest = (digest ^ value) * 0x100000001b3;
    digest ^= digest >> 31;
  };
  for (std::uint32_t i = 0; i < (1u << 16); ++i) {
    const BroachProbeValues v = broach::probe::values_of(i * 65521u);
    mix(v.exp64);
    mix(v.tanh64);
    mix(v.exp32);
    mix(v.tanh32);
    mix(v.fused);
    mix(v.separate);
    mix(v.quotient);
    mix(v.wide_bf16);
    mix(v.wide_f16);
    mix(v.sine);
    mix(v.cosine);
    mix(v.root);
    mix(v.inverse_root);
    mix(v.bf16);
    mix(v.f16);
    mix(v.bf16_from_double);
    mix(v.f16_from_double);
  }
  std::printf("%016llx\n", static_cast<unsigned long long>(digest));
  return 0;
}
