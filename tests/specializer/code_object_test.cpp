#include "specializer/limits/code_object.hpp"

#include <algorithm>
#include <map>
#include <regex>
#include <sstream>

#include "tests/specializer/data_files.hpp"
#include "tests/support/catch.hpp"

namespace broach::specializer {
namespace {

using test::data_path;
using test::read_bytes;

const std::vector<KernelEntry> kEntries{
    {"bounds96", 96, 0}, {"shared4000", 256, 0}, {"stack400", 256, 0}, {"spill", 256, 0}};

void append(std::vector<std::byte>& bytes, std::string_view text) {
  for (const char c : text) bytes.push_back(static_cast<std::byte>(c));
}
void append(std::vector<std::byte>& bytes, std::uint64_t value) {
  for (int i = 0; i < 8; ++i) bytes.push_back(static_cast<std::byte>(value >> (8 * i)));
}

// An offload bundle of parts, as clang lays it out.
std::vector<std::byte> bundle(
    const std::vector<std::pair<std::string, std::vector<std::byte>>>& parts) {
  std::size_t header = 24 + 8;
  for (const auto& [triple, bytes] : parts) header += 24 + triple.size();
  std::vector<std::byte> out;
  append(out, std::string_view("__CLANG_OFFLOAD_BUNDLE__"));
  append(out, parts.size());
  std::size_t offset = header;
  for (const auto& [triple, bytes] : parts) {
    append(out, offset);
    append(out, bytes.size());
    append(out, triple.size());
    append(out, std::string_view(triple));
    offset += bytes.size();
  }
  for (const auto& [triple, bytes] : parts) out.insert(out.end(), bytes.begin(), bytes.end());
  return out;
}

}  // namespace

TEST_CASE("limits read from a code object are what an independent reader prints",
          "[specializer][limits]") {
  const std::string readelf = BROACH_TEST_READELF;
  if (readelf.empty()) BROACH_SKIP("no llvm-readelf");
  const std::string name = GENERATE("gfx90a", "gfx1030");
  const std::string file = data_path("limits_" + name + ".co");
  const Target target = *parse_target(name);
  const auto rows = read_code_object(kEntries, target, read_bytes(file));
  REQUIRE(rows);
  REQUIRE(rows->size() == kEntries.size());

  // One YAML list item a kernel, its fields in alphabetical order.
  std::map<std::string, std::map<std::string, std::uint32_t>> printed;
  std::map<std::string, std::uint32_t> fields;
  std::string kernel;
  std::istringstream lines(test::run_command(readelf + " --notes " + file));
  const std::regex figure("^\\s+(?:- )?\\.(\\w+):\\s+(\\d+)$"), named("^\\s+\\.name:\\s+(\\w+)$");
  for (std::string line; std::getline(lines, line);) {
    std::smatch match;
    if (line.starts_with("  - ")) fields.clear();
    if (std::regex_match(line, match, figure)) {
      fields[match[1]] = static_cast<std::uint32_t>(std::stoul(match[2]));
    }
    if (std::regex_match(line, match, named)) kernel = match[1];
    if (line.find(".wavefront_size:") != std::string::npos) printed[kernel] = fields;
  }
  REQUIRE(printed.size() == kEntries.size());
  for (const LaunchLimits& row : *rows) {
    INFO(name << ' ' << row.function);
    const auto& of = printed.at(row.function);
    CHECK(row.vgprs == of.at("vgpr_count"));
    CHECK(row.registers == of.at("vgpr_count"));
    CHECK(row.sgprs == of.at("sgpr_count"));
    CHECK(row.agprs.has_value() == of.contains("agpr_count"));
    CHECK(row.vgpr_spills == of.at("vgpr_spill_count"));
    CHECK(row.sgpr_spills == of.at("sgpr_spill_count"));
    CHECK(row.spill_bytes == 4 * of.at("vgpr_spill_count"));
    CHECK(row.static_shared == of.at("group_segment_fixed_size"));
    CHECK(row.max_dynamic_shared == 65536 - of.at("group_segment_fixed_size"));
    CHECK(row.stack_bytes == of.at("private_segment_fixed_size"));
    CHECK(row.wave_size == of.at("wavefront_size"));
    CHECK(row.wave_size == target.warp_width);
    CHECK(row.max_threads == of.at("max_flat_workgroup_size"));
    CHECK(row.source == "code object metadata");
  }
}

TEST_CASE("a stored code object reads as it was made", "[specializer][limits]") {
  const auto rows = read_code_object(kEntries, *parse_target("gfx90a"),
                                     read_bytes(data_path("limits_gfx90a.co")));
  REQUIRE(rows);
  CHECK((*rows)[0].max_threads == 96);
  CHECK((*rows)[1].static_shared == 4000);
  CHECK((*rows)[2].stack_bytes == 416);
  CHECK((*rows)[3].vgpr_spills > 0U);
  CHECK((*rows)[3].registers == (*rows)[3].vgprs);
}

TEST_CASE("a bundle gives the part of the target", "[specializer][limits]") {
  const std::vector<std::byte> object = read_bytes(data_path("limits_gfx90a.co"));
  const Target target = *parse_target("gfx90a");
  const auto whole = read_code_object(kEntries, target, object);
  REQUIRE(whole);
  const std::vector<std::byte> good =
      bundle({{"host-x86_64-unknown-linux--", {}},
              {"hipv4-amdgcn-amd-amdhsa--gfx1030", read_bytes(data_path("limits_gfx1030.co"))},
              {"hipv4-amdgcn-amd-amdhsa--gfx90a", object}});
  const auto unwrapped = read_code_object(kEntries, target, good);
  REQUIRE(unwrapped);
  CHECK(*unwrapped == *whole);

  const auto absent = read_code_object(kEntries, *parse_target("gfx942"), good);
  REQUIRE_FALSE(absent);
  CHECK(absent.error().message.find("no part for gfx942") != std::string::npos);
  CHECK(absent.error().message.find("gfx1030") != std::string::npos);

  for (std::size_t size = 0; size < 256; ++size) {
    const auto cut = unwrap_bundle(target, std::span(good).first(size));
    if (cut) CHECK(size < 24);  // Too short to be a bundle: the ELF reader refuses it.
  }
  std::vector<std::byte> far = bundle({{"hip-amdgcn-amd-amdhsa--gfx90a", object}});
  far[32] = std::byte{0xff};
  far[39] = std::byte{0xff};  // The part's offset.
  CHECK_FALSE(unwrap_bundle(target, far));
  std::vector<std::byte> compressed;
  append(compressed, std::string_view("CCOB...."));
  CHECK_FALSE(unwrap_bundle(target, compressed));
}

TEST_CASE("metadata nested without end is refused before it is followed", "[specializer][limits]") {
  std::vector<std::byte> object = read_bytes(data_path("limits_gfx90a.co"));
  std::vector<std::byte> owner;
  append(owner, std::string_view("AMDGPU\0\0", 8));
  const auto note = std::search(object.begin(), object.end(), owner.begin(), owner.end());
  REQUIRE(note != object.end());
  // Every byte of the descriptor opens an array of one element; its size lies 8 bytes before the
  // owner's name.
  const auto size = static_cast<std::ptrdiff_t>(std::to_integer<unsigned>(note[-8]) |
                                                std::to_integer<unsigned>(note[-7]) << 8);
  REQUIRE(size > 100);
  std::fill(note + 8, note + 8 + size, std::byte{0x91});
  const auto rows = read_code_object(kEntries, *parse_target("gfx90a"), object);
  REQUIRE_FALSE(rows);
  CHECK(rows.error().message.find("sane depth") != std::string::npos);
}

TEST_CASE("features a target names must be the binary's", "[specializer][limits]") {
  const std::vector<std::byte> object = read_bytes(data_path("limits_gfx90a.co"));
  const auto other = read_code_object(kEntries, *parse_target("gfx90a:xnack-"), object);
  REQUIRE_FALSE(other);
  CHECK(other.error().message.find("built for gfx90a, not for gfx90a:xnack-") != std::string::npos);
  const auto part = [&](const std::string& id) {
    const auto bytes = bundle({{"hipv4-amdgcn-amd-amdhsa--" + id, object}});
    return unwrap_bundle(*parse_target("gfx90a:xnack-"), bytes).ok();
  };
  CHECK(part("gfx90a:sramecc+:xnack-"));
  CHECK(part("gfx90a:xnack-"));
  CHECK_FALSE(part("gfx90a:xnack+"));
  CHECK_FALSE(part("gfx90a"));
}

TEST_CASE("a code object without the kernel or of another machine is refused by name",
          "[specializer][limits]") {
  const Target target = *parse_target("gfx90a");
  const auto missing = read_code_object(std::vector<KernelEntry>{{"absent", 32, 0}}, target,
                                        read_bytes(data_path("limits_gfx90a.co")));
  REQUIRE_FALSE(missing);
  CHECK(missing.error().message.find("no kernel \"absent\"; it has bounds96") != std::string::npos);
  const auto cubin =
      read_code_object(kEntries, target, read_bytes(data_path("limits_sm_90a.cubin")));
  REQUIRE_FALSE(cubin);
  CHECK(cubin.error().message.find("machine 190") != std::string::npos);
  CHECK_FALSE(read_code_object(kEntries, target, {}));
}

}  // namespace broach::specializer
