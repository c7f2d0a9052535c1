#include "specializer/options.hpp"

namespace broach::specializer {

std::vector<std::string> compiler_options(const Target& target) {
  switch (target.vendor) {
    case Vendor::kNvidia:
      return {
          "--gpu-architecture=" + target.arch,
          "--std=c++20",
          "--fmad=false",
          "--ftz=false",
          "--prec-div=true",
          "--prec-sqrt=true",
          "--device-as-default-execution-space",
          "--no-source-include",  // Else NVRTC looks for headers in the working directory.
          "--ptxas-options=-v",   // The log then states spill bytes, which the ELF does not.
      };
    case Vendor::kAmd:
      return {
          "--offload-arch=" + target.arch,
          "-std=c++20",
          "-O3",
          "-ffp-contract=off",
          "-fno-fast-math",
          "-fno-gpu-flush-denormals-to-zero",
      };
    case Vendor::kHost: {
      std::vector<std::string> options{
          "-std=c++20",
          "-O2",
          "-march=" + target.arch,
          "-ffp-contract=off",
          "-fno-fast-math",
          "-fno-math-errno",
          "-fno-strict-aliasing",  // Device code reads 16-bit pairs through wider types.
          "-fvisibility=hidden",
          "-fPIC",
          "-shared",
          "-Wl,--build-id=none",  // A build id would be the only run-to-run difference.
          "-x",
          "c++",
      };
      if (target.mma_step == MmaStep::kTwoK8) {
        options.push_back("-DBROACH_MMA_STEP_TWO_K8");
      }
      return options;
    }
  }
  return {};
}

}  // namespace broach::specializer
