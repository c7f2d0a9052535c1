#include "specializer/own/family_options.hpp"

#include <algorithm>

#include "specializer/options.hpp"
#include "tests/support/catch.hpp"

namespace {

using namespace broach;
using namespace broach::specializer;
using namespace broach::specializer::own;

bool has(const Result<std::vector<std::string>>& options, std::string_view option) {
  REQUIRE(options);
  return std::find(options->begin(), options->end(), option) != options->end();
}

Result<std::vector<std::string>> options_for(const char* target, const FamilyOptions& options) {
  return own::compiler_options(*parse_target(target), options);
}

constexpr Vendor kVendors[] = {Vendor::kNvidia, Vendor::kAmd, Vendor::kHost};
constexpr const char* kTargets[] = {"sm_90a", "gfx90a", "host"};

}  // namespace

TEST_CASE("an engine's family starts from the arithmetic of the library's own",
          "[specializer][own][options]") {
  for (const char* name : kTargets) {
    const auto own = options_for(name, {});
    for (const std::string& option : specializer::compiler_options(*parse_target(name))) {
      INFO(name << " " << option);
      CHECK(has(own, option));
    }
  }
  for (const char* name : {"gfx90a", "host"}) {
    CHECK(has(options_for(name, {}), "-nostdinc"));
    CHECK(has(options_for(name, {}), "-nostdinc++"));
  }
  CHECK(has(options_for("host:step=k8", {}), "-DBROACH_MMA_STEP_TWO_K8"));
}

TEST_CASE("each option changes what each compiler is given", "[specializer][own][options]") {
  struct Case {
    const char* name;
    OptionValue value;
    const char* nvidia;
    const char* amd;
    const char* host;
  };
  const Case cases[] = {
      {"fmad", true, "--fmad=true", "-ffp-contract=fast", "-ffp-contract=fast"},
      {"fast_math", true, "--use_fast_math", "-ffast-math", nullptr},
      {"ftz", true, "--ftz=true", "-fgpu-flush-denormals-to-zero", nullptr},
      {"line_info", true, "--generate-line-info", "-gline-tables-only", "-g1"},
      {"max_registers", std::uint64_t{64}, "--maxrregcount=64", nullptr, nullptr},
      {"std", std::string("c++17"), "--std=c++17", "-std=c++17", "-std=c++17"},
  };
  for (const Case& each : cases) {
    const char* const expected[] = {each.nvidia, each.amd, each.host};
    for (int i = 0; i < 3; ++i) {
      INFO(each.name << " for " << kTargets[i]);
      FamilyOptions options;
      const auto set = set_option(options, kVendors[i], each.name, each.value);
      if (expected[i] == nullptr) {
        REQUIRE_FALSE(set);
        CHECK(set.error().code == ErrorCode::kUnsupported);
        CHECK(set.error().message.find(each.name) != std::string::npos);
        CHECK(options == FamilyOptions{});
        continue;
      }
      REQUIRE(set);
      CHECK_FALSE(options == FamilyOptions{});
      CHECK(has(options_for(kTargets[i], options), expected[i]));
      CHECK_FALSE(has(options_for(kTargets[i], {}), expected[i]));
    }
  }
}

TEST_CASE("fast math is everything it stands for", "[specializer][own][options]") {
  FamilyOptions fast;
  fast.fast_math = Switch::kOn;
  for (const char* option :
       {"--fmad=true", "--ftz=true", "--prec-div=false", "--prec-sqrt=false"}) {
    CHECK(has(options_for("sm_90a", fast), option));
  }
  fast.ftz = Switch::kOff;
  const auto refused = options_for("sm_90a", fast);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::kInvalidArgument);
  CHECK(refused.error().message.find("option \"ftz\" is false") != std::string::npos);
}

TEST_CASE("an option is refused by its name and value, with what works",
          "[specializer][own][options]") {
  struct Case {
    const char* name;
    OptionValue value;
    const char* words;
  };
  const Case cases[] = {
      {"fmad", std::uint64_t{1}, "option \"fmad\" is 1; true or false works"},
      {"ftz", std::string("on"), "option \"ftz\" is \"on\"; true or false works"},
      {"max_registers", std::uint64_t{15}, "option \"max_registers\" is 15; whole numbers from 16"},
      {"max_registers", std::uint64_t{256}, "is 256; whole numbers from 16 to 255"},
      {"max_registers", true, "option \"max_registers\" is true"},
      {"std", std::string("c++23"), "option \"std\" is \"c++23\"; \"c++17\" and \"c++20\" work"},
      {"std", std::uint64_t{20}, "option \"std\" is 20"},
      {"include_path", std::string("/usr/include"), "no option \"include_path\"; there are fmad"},
  };
  for (const Case& each : cases) {
    FamilyOptions options;
    const auto refused = set_option(options, Vendor::kNvidia, each.name, each.value);
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code == ErrorCode::kInvalidArgument);
    INFO(refused.error().message);
    CHECK(refused.error().message.find(each.words) != std::string::npos);
    CHECK(options == FamilyOptions{});
  }
}

TEST_CASE("options set past the parser are held to the same rules", "[specializer][own][options]") {
  FamilyOptions options;
  options.max_registers = 64;
  CHECK(options_for("sm_80", options));
  for (const char* target : {"gfx942", "host"}) {
    const auto refused = options_for(target, options);
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code == ErrorCode::kUnsupported);
    CHECK(refused.error().message.find("__launch_bounds__") != std::string::npos);
  }
}
