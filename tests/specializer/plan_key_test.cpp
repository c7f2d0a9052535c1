// What names a binary: every field of docs/cache_key.md, and digests that must not move.
#include <algorithm>
#include <fstream>
#include <functional>
#include <map>
#include <set>
#include <sstream>

#include "specializer/plan.hpp"
#include "specializer/window_rows/shape.hpp"
#include "tests/support/catch.hpp"

namespace broach::specializer {
namespace {

struct Keyed {
  Plan plan;
  std::string compiler = "nvrtc 13.0 build 36424714";

  cache::KeyRecord key() const { return key_of(plan, compiler); }
};

// A plan spelled out by hand, so that its digest depends on the key's grammar alone.
Keyed made() {
  Keyed keyed;
  keyed.plan.family = "window_rows";
  keyed.plan.target = *parse_target("gfx90a:xnack-");
  WindowRowsShape shape;
  shape.head_dim = 256;
  shape.gqa_ratio = 2;
  shape.window = 1024;
  shape.kv_layout = {KvLayoutKind::kRing, 1536};
  shape.arith = Arith::kChunk256;
  keyed.plan.shape_json = to_json(shape);
  keyed.plan.parameters = parameters(shape);
  keyed.plan.sources = {{"main.cu", "constexpr int kHeadDim = 256;\n"}, {"common/a.cuh", ""}};
  keyed.plan.options = {"-std=c++20", "-O3"};
  keyed.plan.entries = {{"decode", 128, 0}, {"merge", 64, 0}};
  keyed.plan.kind = ArtifactKind::kCodeObject;
  return keyed;
}

// One change a label of the key. A label of the stream without a row here fails the test.
std::map<std::string, std::function<void(Keyed&)>> changes() {
  std::map<std::string, std::function<void(Keyed&)>> rows{
      {"family", [](Keyed& k) { k.plan.family = "qk_rows"; }},
      {"target", [](Keyed& k) { k.plan.target.name = "gfx90a:xnack+"; }},
      {"kind", [](Keyed& k) { k.plan.kind = ArtifactKind::kCubin; }},
      {"option", [](Keyed& k) { k.plan.options[1] = "-O2"; }},
      {"function", [](Keyed& k) { k.plan.entries[0].function = "prefill"; }},
      {"source.name", [](Keyed& k) { k.plan.sources[1].name = "common/b.cuh"; }},
      {"source.bytes", [](Keyed& k) { k.plan.sources[1].bytes.push_back('\n'); }},
      {"compiler", [](Keyed& k) { k.compiler = "nvrtc 13.0 build 36424715"; }},
  };
  const std::size_t count = parameters(WindowRowsShape{}).size();
  for (std::size_t i = 0; i < count; ++i) {
    rows.emplace("shape." + parameters(WindowRowsShape{})[i].name,
                 [i](Keyed& k) { k.plan.parameters[i].value.push_back('0'); });
  }
  return rows;
}

std::string golden_path() { return std::string(BROACH_TEST_DATA) + "/key_digests.txt"; }

}  // namespace

TEST_CASE("a change of any field changes the key, and no field is without a row",
          "[specializer][key]") {
  const auto rows = changes();
  const cache::KeyRecord base = made().key();
  const auto fields = cache::fields_of(base.stream);
  REQUIRE(fields);
  std::set<std::string> labels;
  for (const cache::KeyField& field : *fields) labels.insert(field.label);
  labels.erase("key_schema");  // A constant of the grammar; its digest is in the golden file.
  for (const std::string& label : labels) {
    INFO("label " << label);
    REQUIRE(rows.contains(label));
  }
  for (const auto& [label, change] : rows) {
    INFO("row " << label);
    CHECK(labels.contains(label));
    Keyed keyed = made();
    change(keyed);
    const cache::KeyRecord changed = keyed.key();
    CHECK(changed.key != base.key);
    const auto changed_fields = cache::fields_of(changed.stream);
    REQUIRE(changed_fields);
    REQUIRE(changed_fields->size() == fields->size());
    for (std::size_t i = 0; i < fields->size(); ++i) {
      if ((*fields)[i] != (*changed_fields)[i]) CHECK((*fields)[i].label == label);
    }
  }
}

TEST_CASE("order and number of options, functions and sources change the key",
          "[specializer][key]") {
  const cache::KeyRecord base = made().key();
  const std::vector<std::function<void(Keyed&)>> rows{
      [](Keyed& k) { std::swap(k.plan.options[0], k.plan.options[1]); },
      [](Keyed& k) { std::swap(k.plan.entries[0], k.plan.entries[1]); },
      [](Keyed& k) { std::swap(k.plan.sources[0], k.plan.sources[1]); },
      [](Keyed& k) { k.plan.options.pop_back(); },
      [](Keyed& k) {
        k.plan.entries.push_back({"decode", 128, 0});
      },
      [](Keyed& k) { k.plan.sources.pop_back(); },
      [](Keyed& k) {  // The same bytes, cut elsewhere.
        k.plan.sources[1].bytes = k.plan.sources[0].bytes.substr(5);
        k.plan.sources[0].bytes.resize(5);
      },
      [](Keyed& k) { k.plan.options = {"-std=c++20-O3"}; },
  };
  for (std::size_t i = 0; i < rows.size(); ++i) {
    INFO("row " << i);
    Keyed keyed = made();
    rows[i](keyed);
    CHECK(keyed.key().key != base.key);
  }
}

TEST_CASE("launch geometry and the JSON form are not in the key", "[specializer][key]") {
  Keyed keyed = made();
  keyed.plan.entries[0].block_threads = 512;
  keyed.plan.shape_json = "{}";
  CHECK(keyed.key() == made().key());
}

TEST_CASE("the source hash covers every name and byte, and nothing else", "[specializer][key]") {
  const std::string base = source_hash(made().plan);
  CHECK(base.size() == 32);
  Keyed keyed = made();
  keyed.plan.options.clear();
  keyed.plan.target = *parse_target("sm_90a");
  CHECK(source_hash(keyed.plan) == base);
  for (const char* label : {"source.name", "source.bytes"}) {
    keyed = made();
    changes().at(label)(keyed);
    CHECK(source_hash(keyed.plan) != base);
  }
}

TEST_CASE("keys have the digests that the golden file holds", "[specializer][key]") {
  std::map<std::string, std::string> now{{"base", made().key().key.hex()},
                                         {"source_hash", source_hash(made().plan)}};
  for (const auto& [label, change] : changes()) {
    Keyed keyed = made();
    change(keyed);
    now.emplace(label, keyed.key().key.hex());
  }
  std::map<std::string, std::string> golden;
  std::ifstream file(golden_path());
  std::string line;
  while (std::getline(file, line)) {
    if (line.empty() || line.starts_with('#')) continue;
    std::istringstream words(line);
    std::string name, digest;
    words >> name >> digest;
    golden.emplace(name, digest);
  }
  for (const auto& [name, digest] : now) {
    INFO(name << ' ' << digest);
    CHECK(golden[name] == digest);
  }
  CHECK(golden.size() == now.size());
}

}  // namespace broach::specializer
