#include "specializer/own/family_options.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <utility>

namespace broach::specializer::own {
namespace {

// A thread has registers for the calling convention whatever a source asks for; no chip has more.
constexpr std::uint64_t kLeastRegisters = 16;
constexpr std::uint64_t kMostRegisters = 255;

using SwitchMember = std::optional<Switch> FamilyOptions::*;

struct NamedSwitch {
  std::string_view name;
  SwitchMember member;
};

constexpr std::array<NamedSwitch, 4> kSwitches = {{{"fmad", &FamilyOptions::fmad},
                                                   {"fast_math", &FamilyOptions::fast_math},
                                                   {"ftz", &FamilyOptions::ftz},
                                                   {"line_info", &FamilyOptions::line_info}}};

std::string shown(const OptionValue& value) {
  if (const bool* flag = std::get_if<bool>(&value)) return *flag ? "true" : "false";
  if (const auto* number = std::get_if<std::uint64_t>(&value)) return fmt::format("{}", *number);
  return fmt::format("\"{}\"", std::get<std::string>(value));
}

std::string_view words_of(Vendor vendor) {
  switch (vendor) {
    case Vendor::kNvidia:
      return "nvidia";
    case Vendor::kAmd:
      return "amd";
    case Vendor::kHost:
      break;
  }
  return "host";
}

Error refused(std::string_view name, const OptionValue& value, std::string_view works) {
  return Error{ErrorCode::kInvalidArgument,
               fmt::format("option \"{}\" is {}; {}", name, shown(value), works), ""};
}

/// What a vendor's compiler has no option for, and what to do instead; empty where it has.
std::string_view missing(Vendor vendor, std::string_view name) {
  if (name == "max_registers" && vendor != Vendor::kNvidia) {
    return "__launch_bounds__ in the source bounds a thread's registers there";
  }
  if (vendor == Vendor::kHost && (name == "ftz" || name == "fast_math")) {
    return "it would change the arithmetic of the whole process; leave it out there";
  }
  return {};
}

Result<void> check_offered(Vendor vendor, std::string_view name, const OptionValue& value) {
  const std::string_view instead = missing(vendor, name);
  if (instead.empty()) return {};
  return Error{ErrorCode::kUnsupported,
               fmt::format("option \"{}\" is {}, and the {} compiler has none such: {}", name,
                           shown(value), words_of(vendor), instead),
               ""};
}

bool is_on(const std::optional<Switch>& option) { return option == Switch::kOn; }

Result<void> check(Vendor vendor, const FamilyOptions& options) {
  for (const NamedSwitch& each : kSwitches) {
    const auto& option = options.*each.member;
    if (!is_on(option)) continue;
    if (auto offered = check_offered(vendor, each.name, true); !offered) return offered;
  }
  if (options.max_registers) {
    if (auto offered =
            check_offered(vendor, "max_registers", std::uint64_t{*options.max_registers});
        !offered) {
      return offered;
    }
  }
  if (!is_on(options.fast_math)) return {};
  for (const std::string_view name : {"fmad", "ftz"}) {
    const auto& option = name == "fmad" ? options.fmad : options.ftz;
    if (option == Switch::kOff) {
      return refused(name, false,
                     "\"fast_math\" is true, which turns it on: leave one of them out");
    }
  }
  return {};
}

std::string standard_of(const FamilyOptions& options) {
  return options.standard == CxxStandard::kCxx17 ? "c++17" : "c++20";
}

std::vector<std::string> nvidia_options(const Target& target, const FamilyOptions& options) {
  const bool fast = is_on(options.fast_math);
  const auto flag = [](bool on) { return on ? "true" : "false"; };
  std::vector<std::string> out{
      "--gpu-architecture=" + target.arch,
      "--std=" + standard_of(options),
      fmt::format("--fmad={}", flag(fast || is_on(options.fmad))),
      fmt::format("--ftz={}", flag(fast || is_on(options.ftz))),
      fmt::format("--prec-div={}", flag(!fast)),
      fmt::format("--prec-sqrt={}", flag(!fast)),
      "--device-as-default-execution-space",
      "--no-source-include",
      "--ptxas-options=-v",
  };
  if (fast) out.emplace_back("--use_fast_math");
  if (is_on(options.line_info)) out.emplace_back("--generate-line-info");
  if (options.max_registers) {
    out.push_back(fmt::format("--maxrregcount={}", *options.max_registers));
  }
  return out;
}

std::vector<std::string> amd_options(const Target& target, const FamilyOptions& options) {
  const bool fast = is_on(options.fast_math);
  std::vector<std::string> out{
      "--offload-arch=" + target.arch,
      "-std=" + standard_of(options),
      "-O3",
      fast ? "-ffast-math" : "-fno-fast-math",
      fast || is_on(options.fmad) ? "-ffp-contract=fast" : "-ffp-contract=off",
      fast || is_on(options.ftz) ? "-fgpu-flush-denormals-to-zero"
                                 : "-fno-gpu-flush-denormals-to-zero",
      "-nostdinc",
      "-nostdinc++",
  };
  if (is_on(options.line_info)) out.emplace_back("-gline-tables-only");
  return out;
}

std::vector<std::string> host_options(const Target& target, const FamilyOptions& options) {
  std::vector<std::string> out{
      "-std=" + standard_of(options),
      "-O2",
      "-march=" + target.arch,
      is_on(options.fmad) ? "-ffp-contract=fast" : "-ffp-contract=off",
      "-fno-fast-math",
      "-fno-math-errno",
      "-fno-strict-aliasing",
      "-fvisibility=hidden",
      "-fPIC",
      "-shared",
      "-Wl,--build-id=none",
      "-nostdinc",
      "-nostdinc++",
  };
  if (is_on(options.line_info)) out.emplace_back("-g1");
  out.insert(out.end(), {"-x", "c++"});
  if (target.mma_step == MmaStep::kTwoK8) out.emplace_back("-DBROACH_MMA_STEP_TWO_K8");
  return out;
}

}  // namespace

Result<void> set_option(FamilyOptions& options, Vendor vendor, std::string_view name,
                        const OptionValue& value) {
  const auto* const known =
      std::find_if(kSwitches.begin(), kSwitches.end(),
                   [&](const NamedSwitch& each) { return each.name == name; });
  if (known != kSwitches.end()) {
    const bool* flag = std::get_if<bool>(&value);
    if (flag == nullptr) return refused(name, value, "true or false works");
    if (*flag) {
      if (auto offered = check_offered(vendor, name, value); !offered) return offered;
    }
    options.*known->member = *flag ? Switch::kOn : Switch::kOff;
    return {};
  }
  if (name == "max_registers") {
    const auto* number = std::get_if<std::uint64_t>(&value);
    if (number == nullptr || *number < kLeastRegisters || *number > kMostRegisters) {
      return refused(
          name, value,
          fmt::format("whole numbers from {} to {} work", kLeastRegisters, kMostRegisters));
    }
    if (auto offered = check_offered(vendor, name, value); !offered) return offered;
    options.max_registers = static_cast<std::uint32_t>(*number);
    return {};
  }
  if (name == "std") {
    const auto* text = std::get_if<std::string>(&value);
    if (text == nullptr || (*text != "c++17" && *text != "c++20")) {
      return refused(name, value, "\"c++17\" and \"c++20\" work");
    }
    options.standard = *text == "c++17" ? CxxStandard::kCxx17 : CxxStandard::kCxx20;
    return {};
  }
  return Error{ErrorCode::kInvalidArgument,
               fmt::format("there is no option \"{}\"; there are fmad, fast_math, ftz, line_info, "
                           "max_registers and std",
                           name),
               ""};
}

Result<std::vector<std::string>> compiler_options(const Target& target,
                                                  const FamilyOptions& options) {
  if (auto fine = check(target.vendor, options); !fine) return fine.error();
  switch (target.vendor) {
    case Vendor::kNvidia:
      return nvidia_options(target, options);
    case Vendor::kAmd:
      return amd_options(target, options);
    case Vendor::kHost:
      break;
  }
  return host_options(target, options);
}

}  // namespace broach::specializer::own
