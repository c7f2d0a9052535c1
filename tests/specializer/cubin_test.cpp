#include "specializer/limits/cubin.hpp"

#include <map>
#include <regex>

#include "specializer/limits/ptxas_log.hpp"
#include "tests/specializer/data_files.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/temp_dir.hpp"

namespace broach::specializer {
namespace {

using test::data_path;
using test::read_bytes;
using test::run_command;

// What ptxas printed of one entry function, read independently of the library.
struct Report {
  std::uint32_t stack = 0, spill_stores = 0, registers = 0, barriers = 0, shared = 0;
  std::uint32_t callee_spill_stores = 0;
};

std::uint32_t number(const std::string& text, const std::string& pattern) {
  std::smatch match;
  return std::regex_search(text, match, std::regex(pattern))
             ? static_cast<std::uint32_t>(std::stoul(match[1]))
             : 0;
}

std::map<std::string, Report> reports_of(const std::string& log) {
  std::map<std::string, Report> reports;
  const std::regex heading("Compiling entry function '([^']+)'");
  for (auto at = std::sregex_iterator(log.begin(), log.end(), heading);
       at != std::sregex_iterator(); ++at) {
    const auto next = std::next(at);
    const std::size_t start = static_cast<std::size_t>(at->position());
    const std::size_t end =
        next == std::sregex_iterator() ? log.size() : static_cast<std::size_t>(next->position());
    std::string part = log.substr(start, end - start);
    const std::string name = (*at)[1];
    Report report;
    const std::size_t callee =
        part.find("Function properties for ", part.find("Function properties for ") + 1);
    if (callee != std::string::npos) {
      report.callee_spill_stores = number(part.substr(callee), "(\\d+) bytes spill stores");
      part.resize(callee);
    }
    report.stack = number(part, "(\\d+) bytes cumulative stack size");
    report.spill_stores = number(part, "(\\d+) bytes spill stores");
    report.registers = number(part, "Used (\\d+) registers");
    report.barriers = number(part, "used (\\d+) barriers");
    report.shared = number(part, "(\\d+) bytes smem");
    reports.emplace(name, report);
  }
  return reports;
}

std::vector<KernelEntry> entries_of(const std::map<std::string, Report>& reports) {
  std::vector<KernelEntry> entries;
  for (const auto& [name, report] : reports) entries.push_back({name, 32, 0});
  return entries;
}

LaunchLimits limits_of(const std::string& file, const std::string& function,
                       std::string_view log = {}) {
  const auto rows = read_cubin(std::vector<KernelEntry>{{function, 32, 0}}, *parse_target("sm_90a"),
                               read_bytes(data_path(file)), log);
  if (!rows) throw std::runtime_error(rows.error().message);
  return rows->front();
}

}  // namespace

TEST_CASE("limits read from a cubin are ptxas's own report on every target",
          "[specializer][limits]") {
  const std::string nvcc = BROACH_TEST_NVCC, ptxas = BROACH_TEST_PTXAS;
  if (nvcc.empty() || ptxas.empty()) BROACH_SKIP("no nvcc and ptxas");
  const test::TempDir dir;
  const std::string ptx = (dir.path() / "zoo.ptx").string();
  run_command(nvcc + " -ptx -arch=compute_75 " + data_path("limits_zoo.cu") + " -o " + ptx);
  for (const std::string_view name : known_targets()) {
    const Target target = *parse_target(name);
    if (target.vendor != Vendor::kNvidia) continue;
    const std::string cubin = (dir.path() / target.name).string();
    const std::string log =
        run_command(ptxas + " -v -arch=" + target.name + " " + ptx + " -o " + cubin);
    const auto reports = reports_of(log);
    REQUIRE(reports.size() == 13);
    // With the log and without it: the figures come out of the ELF wherever it has them.
    for (const std::string& given : {log, std::string()}) {
      const auto rows = read_cubin(entries_of(reports), target, read_bytes(cubin), given);
      REQUIRE(rows);
      REQUIRE(rows->size() == reports.size());
      std::size_t spilling = 0;
      for (const LaunchLimits& row : *rows) {
        INFO(target.name << ' ' << row.function);
        const Report& report = reports.at(row.function);
        CHECK(row.registers == report.registers);
        CHECK(row.barriers == report.barriers);
        CHECK(row.static_shared == report.shared);
        CHECK(row.max_dynamic_shared == target.max_shared_bytes - report.shared);
        CHECK(row.constant_bytes == 308);
        if (row.function == "recursion" && given.empty()) {
          CHECK_FALSE(row.spill_bytes);  // A callee's spills are in the log alone.
        } else {
          CHECK(row.spill_bytes == report.spill_stores + report.callee_spill_stores);
        }
        CHECK(row.stack_bytes == report.stack);
        spilling += row.spill_bytes.value_or(0) > 0;
      }
      CHECK(spilling >= 4);
    }
  }
}

TEST_CASE("threads a block follow from launch bounds and the register file",
          "[specializer][limits]") {
  const LaunchLimits bounds = limits_of("limits_sm_90a.cubin", "bounds96");
  CHECK(bounds.launch_bounds == 96);
  CHECK(bounds.max_threads == 96);
  const LaunchLimits none = limits_of("limits_sm_90a.cubin", "shared4000");
  CHECK_FALSE(none.launch_bounds);
  CHECK(none.max_threads == 1024);
  CHECK(none.wave_size == 32);

  const std::string nvcc = BROACH_TEST_NVCC, ptxas = BROACH_TEST_PTXAS;
  if (nvcc.empty() || ptxas.empty()) BROACH_SKIP("no nvcc and ptxas");
  const test::TempDir dir;
  const std::string cubin = (dir.path() / "zoo.cubin").string();
  run_command(nvcc + " -cubin -arch=sm_90a " + data_path("limits_zoo.cu") + " -o " + cubin);
  const auto rows = read_cubin(std::vector<KernelEntry>{{"many_registers", 256, 0}},
                               *parse_target("sm_90a"), read_bytes(cubin), "");
  REQUIRE(rows);
  REQUIRE(rows->front().registers > 248U);
  // 256 registers of 32 threads leave two warps in each quarter of 64 Ki registers.
  CHECK(rows->front().max_threads == 256);
}

TEST_CASE("a stored cubin reads as ptxas reported it when it was made", "[specializer][limits]") {
  const std::string file = GENERATE("limits_sm_90a.cubin", "limits_sm_90a_abi7.cubin");
  INFO(file);
  const LaunchLimits shared = limits_of(file, "shared4000");
  CHECK(shared.registers == 10);
  CHECK(shared.static_shared == 4000);
  CHECK(shared.max_dynamic_shared == 232448 - 4000);
  CHECK(shared.barriers == 1);
  CHECK(shared.stack_bytes == 0);
  CHECK(shared.spill_bytes == 0);
  CHECK(limits_of(file, "stack400").stack_bytes == 400);
  CHECK(limits_of(file, "bounds96").launch_bounds == 96);
  CHECK(limits_of(file, "spill").registers == 32);
  CHECK(limits_of(file, "spill").stack_bytes == 520);
}

TEST_CASE("spills are in the ELF from toolkit 13 on, and in the log before it",
          "[specializer][limits]") {
  const LaunchLimits from_elf = limits_of("limits_sm_90a.cubin", "spill");
  CHECK(from_elf.spill_bytes == 744);
  CHECK(from_elf.source == "cubin");

  CHECK_FALSE(limits_of("limits_sm_90a_abi7.cubin", "spill").spill_bytes);
  const LaunchLimits from_log =
      limits_of("limits_sm_90a_abi7.cubin", "spill",
                "ptxas info    : Function properties for spill\n"
                "    520 bytes stack frame, 744 bytes spill stores, 1004 bytes spill loads\n");
  CHECK(from_log.spill_bytes == 744);
  CHECK(from_log.source == "cubin; spills from ptxas's log");
  // A stack array is no spill, but an old ELF alone cannot tell.
  CHECK(limits_of("limits_sm_90a.cubin", "stack400").spill_bytes == 0);
  CHECK_FALSE(limits_of("limits_sm_90a_abi7.cubin", "stack400").spill_bytes);
}

TEST_CASE("a cubin of another chip, without the entry, or of another kind is refused by name",
          "[specializer][limits]") {
  const std::vector<std::byte> cubin = read_bytes(data_path("limits_sm_90a.cubin"));
  const std::vector<KernelEntry> plain{{"bounds96", 32, 0}};
  const auto other_chip = read_cubin(plain, *parse_target("sm_80"), cubin, "");
  REQUIRE_FALSE(other_chip);
  CHECK(other_chip.error().code == ErrorCode::kDamaged);
  CHECK(other_chip.error().message.find("built for sm_90, not for sm_80") != std::string::npos);
  const auto missing =
      read_cubin(std::vector<KernelEntry>{{"absent", 32, 0}}, *parse_target("sm_90a"), cubin, "");
  REQUIRE_FALSE(missing);
  CHECK(missing.error().message.find("\"absent\"; it has ") != std::string::npos);
  CHECK(missing.error().message.find("bounds96") != std::string::npos);
  const auto other_kind =
      read_cubin(plain, *parse_target("sm_90a"), read_bytes(data_path("limits_gfx90a.co")), "");
  REQUIRE_FALSE(other_kind);
  CHECK(other_kind.error().message.find("machine 224") != std::string::npos);
}

TEST_CASE("a function's report is found in a log by its whole name", "[specializer][limits]") {
  const std::string log =
      "ptxas info    : Function properties for spill_more\n"
      "    8 bytes stack frame, 8 bytes spill stores, 8 bytes spill loads\n"
      "ptxas info    : Function properties for spill\n"
      "ptxas         .     16 bytes stack frame, 12 bytes spill stores, 4 bytes spill loads\n";
  const auto found = ptxas_properties(log, "spill");
  REQUIRE(found);
  CHECK(found->stack_bytes == 16);
  CHECK(found->spill_store_bytes == 12);
  CHECK(found->spill_load_bytes == 4);
  CHECK_FALSE(ptxas_properties(log, "spil"));
  CHECK_FALSE(ptxas_properties(log.substr(0, log.size() - 20), "spill"));
  CHECK_FALSE(ptxas_properties("Function properties for spill", "spill"));
  CHECK_FALSE(ptxas_properties("", "spill"));
}

}  // namespace broach::specializer
