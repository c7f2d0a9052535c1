#include "specializer/target.hpp"

#include <set>

#include "specializer/chips.hpp"
#include "specializer/host_model.hpp"
#include "specializer/options.hpp"
#include "tests/support/catch.hpp"

namespace broach::specializer {

TEST_CASE("every known target reads back under its own name", "[specializer][target]") {
  std::set<std::string_view> names;
  for (const std::string_view name : known_targets()) {
    INFO(name);
    const auto target = parse_target(name);
    REQUIRE(target);
    CHECK(target->name == name);
    CHECK(names.insert(name).second);
    CHECK((target->warp_width == 32 || target->warp_width == 64));
    CHECK(target->max_shared_bytes >= 64 * 1024);
    CHECK((target->registers_per_block > 0) == (target->vendor != Vendor::kHost));
    CHECK(target->least_driver.stated() == (target->vendor == Vendor::kNvidia));
  }
  CHECK(names.size() == 61);
}

TEST_CASE("a target states its chip's facts", "[specializer][target]") {
  struct Row {
    std::string_view name;
    Vendor vendor;
    std::uint32_t warp_width;
    MmaStep step;
    std::uint32_t shared;
    std::uint32_t registers;
  };
  const Row row = GENERATE(values<Row>({
      {"sm_75", Vendor::kNvidia, 32, MmaStep::kNone, 65536, 65536},
      {"sm_80", Vendor::kNvidia, 32, MmaStep::kTwoK8, 166912, 65536},
      {"sm_89", Vendor::kNvidia, 32, MmaStep::kTwoK8, 101376, 65536},
      {"sm_90a", Vendor::kNvidia, 32, MmaStep::kOneK16, 232448, 65536},
      {"sm_100f", Vendor::kNvidia, 32, MmaStep::kOneK16, 232448, 65536},
      {"sm_121a", Vendor::kNvidia, 32, MmaStep::kOneK16, 101376, 65536},
      {"gfx90a", Vendor::kAmd, 64, MmaStep::kMfma, 65536, 131072},
      {"gfx950", Vendor::kAmd, 64, MmaStep::kMfma, 163840, 131072},
      {"gfx1030", Vendor::kAmd, 32, MmaStep::kNone, 65536, 131072},
      {"gfx1100", Vendor::kAmd, 32, MmaStep::kWmma, 65536, 196608},
      {"host-x86-64-v3", Vendor::kHost, 32, MmaStep::kOneK16, 232448, 0},
      {"host-x86-64-v3:step=k8", Vendor::kHost, 32, MmaStep::kTwoK8, 232448, 0},
  }));
  const auto target = parse_target(row.name);
  REQUIRE(target);
  CHECK(target->vendor == row.vendor);
  CHECK(target->warp_width == row.warp_width);
  CHECK(target->mma_step == row.step);
  CHECK(target->max_shared_bytes == row.shared);
  CHECK(target->registers_per_block == row.registers);
  CHECK(target->max_threads_per_block == 1024);
}

TEST_CASE("AMD features read in any order and print in one", "[specializer][target]") {
  const auto target = parse_target("gfx90a:xnack-:sramecc+");
  REQUIRE(target);
  CHECK(target->name == "gfx90a:sramecc+:xnack-");
  CHECK(target->arch == target->name);
  CHECK(parse_target("gfx942:xnack+")->name == "gfx942:xnack+");
}

TEST_CASE("a feature a chip does not have is refused by name", "[specializer][target]") {
  const std::string name =
      GENERATE("gfx1100:xnack-", "gfx90a:xnack", "gfx90a:", "gfx90a:xnack-:xnack+", "gfx90a:foo+",
               "sm_90a:xnack-", "host:xnack+", "gfx90a::xnack-", "host:step=k16",
               "host:step=k8:step=k8", "sm_80:step=k8", "host:");
  INFO(name);
  const auto target = parse_target(name);
  REQUIRE_FALSE(target);
  CHECK(target.error().code == ErrorCode::kInvalidArgument);
  CHECK(target.error().message.find(name) != std::string::npos);
}

TEST_CASE("an unknown target is refused in few words that say where all are listed",
          "[specializer][target]") {
  const std::string name = GENERATE("sm_999", "", "gfx", "SM_90a", "host-riscv", "sm_90 ");
  const auto target = parse_target(name);
  REQUIRE_FALSE(target);
  CHECK(target.error().code == ErrorCode::kInvalidArgument);
  CHECK(target.error().message.find("\"" + name + "\"") != std::string::npos);
  CHECK(target.error().message.find("broach help targets") != std::string::npos);
  CHECK(target.error().message.size() < 160);
}

TEST_CASE("a misspelt target is refused with the nearest ones", "[specializer][target]") {
  for (const auto& [name, nearest] : {std::pair("sm_09a", "sm_90a"), std::pair("gfx924", "gfx942"),
                                      std::pair("gxf942:xnack+", "gfx942")}) {
    INFO(name);
    const auto target = parse_target(name);
    REQUIRE_FALSE(target);
    const std::string& said = target.error().message;
    CHECK(said.find("did you mean") < said.find(nearest));
    CHECK(said.find(nearest, said.find("did you mean")) != std::string::npos);
  }
}

TEST_CASE("a chip under another compiler's name points at its target", "[specializer][target]") {
  const std::string name = GENERATE("compute_90a", "90a", "SM_90a");
  const auto target = parse_target(name);
  REQUIRE_FALSE(target);
  CHECK(target.error().message.find("; sm_90a works") != std::string::npos);
}

TEST_CASE("a family has a plain, a chip's own and a family's target where NVRTC has one",
          "[specializer][target]") {
  for (const std::string_view family : {"sm_100", "sm_103", "sm_110", "sm_120", "sm_121"}) {
    for (const std::string_view suffix : {"", "a", "f"}) {
      const std::string name = std::string(family) + std::string(suffix);
      INFO(name);
      const auto target = parse_target(name);
      REQUIRE(target);
      CHECK(target->arch == name);
      CHECK(target->mma_step == MmaStep::kOneK16);
    }
  }
  CHECK(parse_target("sm_90"));
  CHECK_FALSE(parse_target("sm_90f"));
  CHECK_FALSE(parse_target("sm_80a"));
}

TEST_CASE("what a compiler states and broach has no target for has a reason or none is known",
          "[specializer][target]") {
  for (const std::string_view name : {"gfx600", "gfx705", "gfx11-generic"}) {
    CHECK_FALSE(parse_target(name));
    CHECK_FALSE(why_no_target(name).empty());
  }
  CHECK(why_no_target("gfx1300").empty());
  for (const std::string_view name : known_targets()) CHECK(why_no_target(name).empty());
}

TEST_CASE("host is this machine's host target", "[specializer][target]") {
  const auto target = parse_target("host");
  REQUIRE(target);
  CHECK(target->name == native_host_target());
  CHECK(target->vendor == Vendor::kHost);
}

TEST_CASE("the host models the MMA step of the chip it is asked for", "[specializer][target]") {
  const auto target = parse_target("host:step=k8");
  REQUIRE(target);
  CHECK(target->name == std::string(native_host_target()) + ":step=k8");
  CHECK(target->arch == parse_target("host")->arch);
  for (const std::string_view name : known_targets()) {
    const Target chip = *parse_target(name);
    CAPTURE(name);
    const auto model = parse_target(host_target_modelling(chip));
    REQUIRE(model);
    CHECK(model->vendor == Vendor::kHost);
    const bool modelled = chip.mma_step == MmaStep::kTwoK8 || chip.mma_step == MmaStep::kOneK16;
    if (modelled) CHECK(model->mma_step == chip.mma_step);
  }
}

TEST_CASE("the host's two MMA steps are two binaries", "[specializer][target]") {
  const auto one = compiler_options(*parse_target("host"));
  auto two = compiler_options(*parse_target("host:step=k8"));
  REQUIRE(two.size() == one.size() + 1);
  CHECK(two.back() == "-DBROACH_MMA_STEP_TWO_K8");
  two.pop_back();
  CHECK(two == one);
}

}  // namespace broach::specializer
