#include "specializer/limits.hpp"

#include <algorithm>
#include <fstream>
#include <random>

#include "specializer/limits/elf_image.hpp"
#include "tests/specializer/data_files.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/temp_dir.hpp"

namespace broach::specializer {
namespace {

using test::data_path;
using test::read_bytes;

struct Case {
  Plan plan;
  std::vector<std::byte> binary;
};

Plan plan_of(std::string_view target, ArtifactKind kind, std::vector<KernelEntry> entries) {
  Plan plan;
  plan.target = *parse_target(target);
  plan.kind = kind;
  plan.entries = std::move(entries);
  return plan;
}

// A host object made of the shim's own record, by this machine's compiler.
Case host_case() {
  const test::TempDir dir;
  const std::string object = (dir.path() / "kernel.so").string();
  const std::string source = (dir.path() / "kernel.cpp").string();
  std::ofstream(source) << R"(#include "host/abi.h"
extern "C" __attribute__((visibility("default"))) const BroachHostRecord
    broach_host_record_sum = {BROACH_HOST_MAGIC, BROACH_HOST_ABI_VERSION, 192, 2048, 64, {}};
extern "C" __attribute__((visibility("default"))) const BroachHostRecord
    broach_host_record_old = {BROACH_HOST_MAGIC, BROACH_HOST_ABI_VERSION + 1, 1, 1, 1, {}};
)";
  test::run_command(std::string(BROACH_TEST_CXX) + " -shared -fPIC -I" + BROACH_TEST_KERNEL_SRC +
                    " " + source + " -o " + object);
  return {plan_of("host", ArtifactKind::kHostSharedObject, {{"sum", 192, 0}}), read_bytes(object)};
}

std::vector<Case> cases() {
  const std::vector<KernelEntry> entries{
      {"bounds96", 96, 0}, {"shared4000", 256, 0}, {"stack400", 256, 0}, {"spill", 256, 0}};
  return {{plan_of("sm_90a", ArtifactKind::kCubin, entries),
           read_bytes(data_path("limits_sm_90a.cubin"))},
          {plan_of("sm_90a", ArtifactKind::kCubin, entries),
           read_bytes(data_path("limits_sm_90a_abi7.cubin"))},
          {plan_of("gfx90a", ArtifactKind::kCodeObject, entries),
           read_bytes(data_path("limits_gfx90a.co"))},
          {plan_of("gfx1030", ArtifactKind::kCodeObject, entries),
           read_bytes(data_path("limits_gfx1030.co"))},
          host_case()};
}

}  // namespace

TEST_CASE("a host object's record is read without loading it", "[specializer][limits]") {
  Case made = host_case();
  const auto rows = read_limits(made.plan, made.binary, "");
  REQUIRE(rows);
  const LaunchLimits& row = rows->front();
  CHECK(row.function == "sum");
  CHECK(row.launch_bounds == 192);
  CHECK(row.max_threads == 192);
  CHECK(row.static_shared == 2048);
  CHECK(row.max_dynamic_shared == made.plan.target.max_shared_bytes - 2048);
  CHECK(row.source == "host object record");

  made.plan.entries = {{"old", 1, 0}};
  const auto old = read_limits(made.plan, made.binary, "");
  REQUIRE_FALSE(old);
  CHECK(old.error().message.find("version 2") != std::string::npos);
  made.plan.entries = {{"absent", 1, 0}};
  const auto absent = read_limits(made.plan, made.binary, "");
  REQUIRE_FALSE(absent);
  CHECK(absent.error().message.find("broach_host_record_absent") != std::string::npos);
}

TEST_CASE("rows come in the plan's order", "[specializer][limits]") {
  Case made = cases().front();
  std::reverse(made.plan.entries.begin(), made.plan.entries.end());
  const auto rows = read_limits(made.plan, made.binary, "");
  REQUIRE(rows);
  for (std::size_t i = 0; i < rows->size(); ++i) {
    CHECK((*rows)[i].function == made.plan.entries[i].function);
  }
}

TEST_CASE("a binary cut at any length is damaged, or reads as the whole one",
          "[specializer][limits]") {
  for (const Case& made : cases()) {
    const auto whole = read_limits(made.plan, made.binary, "");
    REQUIRE(whole);
    std::size_t refused = 0;
    for (std::size_t size = 0; size < made.binary.size(); ++size) {
      const auto cut = read_limits(made.plan, std::span(made.binary).first(size), "");
      if (cut) {
        CHECK(*cut == *whole);
        continue;
      }
      ++refused;
      if (cut.error().code != ErrorCode::kDamaged)
        FAIL("size " << size << ' ' << cut.error().message);
    }
    CHECK(refused > made.binary.size() / 2);
  }
}

TEST_CASE("a binary with changed bytes is read or refused, never more than that",
          "[specializer][limits]") {
  std::mt19937 random(20240607);
  std::size_t refused = 0;
  for (const Case& made : cases()) {
    for (int round = 0; round < 3000; ++round) {
      std::vector<std::byte> bytes = made.binary;
      const unsigned changes = 1 + random() % 4;
      for (unsigned i = 0; i < changes; ++i) {
        // Half of the changes fall on the ELF header, whose every field matters.
        const std::size_t at = random() % 2 == 0 ? random() % 64 : random() % bytes.size();
        bytes[at] = random() % 2 == 0 ? std::byte{0xff} : static_cast<std::byte>(random());
      }
      refused += !read_limits(made.plan, bytes, "").ok();
    }
  }
  CHECK(refused > 1000);
}

TEST_CASE("an address outside every loaded section has no bytes", "[specializer][limits]") {
  const Case made = host_case();
  const auto image = ElfImage::read(made.binary);
  REQUIRE(image);
  const ElfImage::Section* const section = image->find(".rodata");
  REQUIRE(section != nullptr);
  CHECK(image->at_address(section->address, 1));
  CHECK(image->at_address(section->address, section->size));
  CHECK_FALSE(image->at_address(section->address, section->size + 4096));
  CHECK_FALSE(image->at_address(~std::uint64_t{0}, 8));
  CHECK(image->find(".no_such_section") == nullptr);
}

}  // namespace broach::specializer
