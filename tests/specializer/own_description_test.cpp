#include "specializer/own/description.hpp"

#include <string>

#include "specializer/own/json_place.hpp"
#include "tests/support/catch.hpp"

namespace broach::specializer::own {
namespace {

constexpr std::string_view kWhole = R"({
  "family": 1,
  "name": "acme.rms_norm",
  "parameters": [
    {"name": "dim", "type": "int", "range": [64, 16384], "multiple_of": 8, "constant": "kDim"},
    {"name": "dtype", "type": "enum", "values": {"bf16": "__nv_bfloat16", "f16": "__half"},
     "default": "f16", "macro": "ELEMENT"},
    {"name": "residual", "type": "bool", "default": true, "constant": "kResidual"},
    {"name": "warps", "type": "int", "values": [1, 4], "default": 4}
  ],
  "sources": ["rms_norm.cuh", "sub/vec.cuh"],
  "main": "rms_norm.cuh",
  "packs": ["cuda", {"name": "ours", "root": "third_party/ours"}],
  "functions": ["acme_rms_norm", {"name": "scale", "expression": "scale<{warps}>", "block": [32, 4],
                 "dynamic_shared": 4096}],
  "targets": ["sm_80+", "gfx90a+", "host"],
  "refuse": ["spills"]
})";

/// The text with `from`, which is there once, replaced.
std::string with(std::string_view from, std::string_view to) {
  std::string text(kWhole);
  const std::size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  REQUIRE(text.find(from, at + 1) == std::string::npos);
  return text.replace(at, from.size(), to);
}

std::string fault_of(const std::string& text) {
  const auto read = read_description("f.json", text);
  return read ? "" : read.error().message;
}

bool says(const std::string& message, std::string_view part) {
  return message.find(part) != std::string::npos;
}

Target target(std::string_view name) { return *parse_target(name); }

}  // namespace

TEST_CASE("a family file is read whole", "[own]") {
  const auto read = read_description("f.json", kWhole);
  REQUIRE(fault_of(std::string(kWhole)) == "");
  CHECK(read->name == "acme.rms_norm");
  REQUIRE(read->parameters.size() == 4);
  CHECK(read->parameters[0].least == 64);
  CHECK(read->parameters[0].multiple_of == 8);
  CHECK(read->parameters[1].values[1].code == "__half");
  CHECK(read->parameters[1].default_value == 1);
  CHECK(read->parameters[2].default_value == 1);
  CHECK(read->parameters[3].listed == std::vector<std::uint32_t>{1, 4});
  CHECK(read->main == "rms_norm.cuh");
  REQUIRE(read->packs.size() == 2);
  CHECK(read->packs[0].root.empty());
  REQUIRE(read->functions.size() == 2);
  CHECK_FALSE(read->functions[0].block);
  CHECK(read->functions[1].block == std::array<std::uint32_t, 3>{32, 4, 1});
  CHECK(read->functions[1].dynamic_shared == 4096);
  CHECK(read->refuse.spills);
  CHECK_FALSE(read->refuse.local_memory);
}

TEST_CASE("a fault of a family file names file, line, member, value and the way out", "[own]") {
  const struct {
    std::string text;
    const char* message;
  } cases[] = {
      {with("\"family\": 1", "\"family\": 2"),
       "f.json line 2: family: version 2 is not known here; 1 is"},
      {with("acme.rms_norm\"", "rms_norm\""), "f.json line 3: name: \"rms_norm\" does not work; "},
      {with("[64, 16384]", "[64]"),
       "f.json line 5: parameters[0].range: [64] does not work; [least, most] does"},
      {with("[64, 16384]", "[64, 16]"),
       "f.json line 5: parameters[0].range: 16 does not work; whole numbers from 64 to"},
      {with("\"multiple_of\": 8", "\"multiple_of\": 0"),
       "f.json line 5: parameters[0].multiple_of: 0 does not work; whole numbers from 1 to"},
      {with("\"type\": \"bool\"", "\"type\": \"boolean\""),
       "f.json line 8: parameters[2].type: \"boolean\" does not work; int, enum and bool do"},
      {with("\"default\": \"f16\"", "\"default\": \"f32\""),
       "f.json line 7: parameters[1].default: \"f32\" is not among the values"},
      {with("\"dtype\"", "\"dim\""),
       "f.json line 6: parameters[1].name: \"dim\" is the name of two"},
      {with("\"kResidual\"", "\"kDim\""), "\"kDim\" is defined by two parameters"},
      {with("scale<{warps}>", "scale<4>"),
       "f.json line 9: parameters[3]: warps changes nothing: give it a \"constant\""},
      {with("scale<{warps}>", "scale<{warps}, {heads}>"),
       "f.json line 14: functions[1].expression: {heads} is no parameter of the family"},
      {with("\"sub/vec.cuh\"", "\"../vec.cuh\""),
       "f.json line 11: sources[1]: \"../vec.cuh\" does not work; a path relative to"},
      {with("\"sub/vec.cuh\"", "\"/vec.cuh\""), "f.json line 11: sources[1]: \"/vec.cuh\""},
      {with("\"main\": \"rms_norm.cuh\"", "\"main\": \"rms.cuh\""),
       "f.json line 12: main: \"rms.cuh\" is not among the sources: rms_norm.cuh, sub/vec.cuh"},
      {with("\"cuda\"", "\"rocm\""),
       "f.json line 13: packs[0]: \"rocm\" is no toolkit's; cuda and"},
      {with("[32, 4]", "[32, 64]"),
       "f.json line 14: functions[1].block: 2048 in all; 1024 at most"},
      {with("\"sm_80+\"", "\"sm80+\""),
       "f.json line 16: targets[0]: \"sm80+\" is no target; a chip"},
      {with("[\"spills\"]", "[\"spill\"]"),
       "f.json line 17: refuse[0]: \"spill\" does not work; spills"},
      {with("\"refuse\"", "\"refuses\""),
       "f.json line 17: refuses: there is no such member; there are"},
      {with("\"refuse\": [\"spills\"]", "\"refuse\": []"),
       "f.json line 17: refuse: the array is empty"},
      {with("[\"spills\"]\n}", "[\"spills\"]"), "f.json: line 17 is not JSON"},
  };
  for (const auto& each : cases) {
    INFO(each.text);
    INFO(each.message);
    CHECK(says(fault_of(each.text), each.message));
  }
  CHECK(says(fault_of("[]"), "f.json line 1: [] is no object"));
  CHECK(says(fault_of("{}"), "\"family\" is missing"));
}

TEST_CASE("a target rule takes the chips that it names", "[own]") {
  const auto sm80 = TargetRule::read("sm_80+");
  REQUIRE(sm80);
  CHECK(sm80->takes(target("sm_80")));
  CHECK(sm80->takes(target("sm_90a")));
  CHECK(sm80->takes(target("sm_120")));
  CHECK_FALSE(sm80->takes(target("sm_75")));
  CHECK_FALSE(sm80->takes(target("gfx90a")));
  CHECK_FALSE(sm80->takes(target("host")));
  const auto gfx = TargetRule::read("gfx90a+");
  REQUIRE(gfx);
  CHECK(gfx->takes(target("gfx90a:xnack-")));
  CHECK(gfx->takes(target("gfx1100")));
  CHECK_FALSE(gfx->takes(target("gfx906")));
  const auto exact = TargetRule::read("sm_90a");
  REQUIRE(exact);
  CHECK(exact->takes(target("sm_90a")));
  CHECK_FALSE(exact->takes(target("sm_90")));
  const auto host = TargetRule::read("host");
  REQUIRE(host);
  CHECK(host->takes(target("host:step=k8")));
  CHECK_FALSE(host->takes(target("sm_90a")));
  CHECK_FALSE(TargetRule::read("sm_1+"));
  CHECK_FALSE(TargetRule::read(""));
}

TEST_CASE("a JSON value is found by its line, whatever stands before it", "[own]") {
  const std::string text = "{\"a\\\"]\": [1,\n {\"b\": \"}\", \"c\":\n2}],\n\"d\": true}";
  const auto line = [&](std::vector<JsonStep> path) { return line_of(text, path); };
  CHECK(line({}) == 1);
  CHECK(line({"a\\\"]", std::size_t{1}}) == 2);
  CHECK(line({"a\\\"]", std::size_t{1}, "c"}) == 3);
  CHECK(line({"d"}) == 4);
  CHECK(line({"d", "e"}) == 4);
  CHECK(line({"nosuch"}) == 1);
  for (std::size_t cut = 0; cut < text.size(); ++cut) {
    // On what is no JSON it ends, and stays inside.
    CHECK(line_of(std::string_view(text).substr(0, cut), std::vector<JsonStep>{"d"}) <= 4);
  }
}

}  // namespace broach::specializer::own
