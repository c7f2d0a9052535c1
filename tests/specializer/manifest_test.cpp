#include "specializer/manifest.hpp"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "specializer/window_rows/shape.hpp"
#include "tests/specializer/data_files.hpp"
#include "tests/support/catch.hpp"

namespace broach::specializer {
namespace {

using Json = nlohmann::json;

const std::string kGood = R"j({"manifest": 1, "name": "small", "entries": [
  {"model": "A", "layers": "sliding", "source": "config.json", "q_heads": 16, "kv_heads": 8,
   "shape": {"head_dim": 256, "gqa_ratio": 2, "window": 1024, "kv_layout": "ring(1536)"},
   "prefill": {"kv_layout": "ring(2048)"}},
  {"model": "B", "layers": "sliding", "source": "config.json",
   "shape": {"head_dim": 256, "gqa_ratio": 2, "window": 1024, "kv_layout": "ring(1536)"}}],
 "not_served": [{"model": "C", "layers": "all", "source": "s", "reason": "sparse"}]})j";

const std::string kOther = R"j({"kv_layout": "ring(2048)"})j";

std::string changed(const std::string& from, const std::string& to) {
  std::string text = kGood;
  text.replace(text.find(from), from.size(), to);
  return text;
}

std::vector<Manifest> shipped() {
  std::vector<std::filesystem::path> files;
  for (const auto& file : std::filesystem::directory_iterator(BROACH_TEST_MANIFESTS)) {
    files.push_back(file.path());
  }
  std::sort(files.begin(), files.end());
  std::vector<Manifest> manifests;
  for (const auto& file : files) {
    auto manifest = read_manifest(file.filename().string(), test::read_text(file.string()));
    if (!manifest) throw std::runtime_error(manifest.error().message);
    if (manifest->name + ".json" != file.filename()) throw std::runtime_error(file.string());
    manifests.push_back(std::move(*manifest));
  }
  return manifests;
}

// Whether window_rows can serve a row of the model table, decided from the table alone.
bool can_be_served(const Json& row) {
  const auto unknown = [&](const char* field) {
    return !row.contains(field) || row[field].is_null();
  };
  if (row.contains("sparse") || row.contains("attention_chunk")) return false;
  if (unknown("q_heads") || unknown("kv_heads")) return false;
  if (row.value("v_head_dim", row["head_dim"].get<int>()) != row["head_dim"]) return false;
  const int q = row["q_heads"], kv = row["kv_heads"];
  static const std::set<int> dims{64, 80, 96, 112, 128, 192, 256, 512};
  return q % kv == 0 && q / kv <= 32 && dims.contains(row["head_dim"].get<int>());
}

}  // namespace

TEST_CASE("a window_rows entry has both forms, and equal shapes are one",
          "[specializer][manifest]") {
  const auto manifest = read_manifest("small.json", kGood);
  REQUIRE(manifest);
  CHECK(manifest->name == "small");
  REQUIRE(manifest->entries.size() == 2);
  const ManifestEntry& entry = manifest->entries.front();
  CHECK(entry.model == "A");
  CHECK(entry.family == &window_rows::family());
  REQUIRE(entry.shapes.size() == 2);
  const auto decode = typed_of<WindowRowsShape>(entry.shapes[0]);
  const auto prefill = typed_of<WindowRowsShape>(entry.shapes[1]);
  CHECK(decode.form == Form::kDecode);
  CHECK(decode.kv_layout.length == 1536);
  CHECK(prefill.form == Form::kPrefill);
  CHECK(prefill.kv_layout.length == 2048);
  // One decode and two prefills.
  CHECK(distinct_shapes(*manifest).size() == 3);
  REQUIRE(manifest->not_served.size() == 1);
  CHECK(manifest->not_served.front().reason == "sparse");
}

TEST_CASE("a manifest that does not read is refused with place, field, value and way out",
          "[specializer][manifest]") {
  struct Row {
    std::string text;
    std::vector<std::string> says;
  };
  const Row row = GENERATE(values<Row>({
      {"", {"line 1 is not JSON"}},
      {"{\"manifest\": 1,\n \"name\": oops}", {"line 2 is not JSON"}},
      {"[]", {"must be a JSON object"}},
      {changed("\"manifest\": 1", "\"manifest\": 2"), {"it is 2"}},
      {changed("\"manifest\": 1, ", ""), {"it is null"}},
      {changed("\"name\": \"small\"", "\"name\": 3"), {"\"name\" must be a text"}},
      {changed("\"entries\"", "\"entires\""), {"no field \"entires\"", "entries"}},
      {changed("\"head_dim\": 256", "\"head_dim\": 100"),
       {"entries[0] (A)", "head_dim=100", "96, 112"}},
      {changed("\"head_dim\": 256", "\"head_dimension\": 256"),
       {"entries[0] (A)", "head_dimension"}},
      {changed("\"gqa_ratio\": 2", "\"gqa_ratio\": 3"),
       {"entries[0] (A)", "gqa_ratio=3 contradicts q_heads=16 over kv_heads=8"}},
      {changed("\"gqa_ratio\": 2", "\"gqa_ratio\": 0"), {"gqa_ratio=0", "1..32"}},
      {changed("\"window\": 1024", "\"window\": 2048"), {"window=2048", "ring(1536)"}},
      {changed("\"window\": 1024", "\"window\": -1"), {"window=-1"}},
      {changed("\"q_heads\": 16", "\"q_heads\": 0"), {"entries[0] (A)", "\"q_heads\" is 0"}},
      {changed("\"q_heads\": 16", "\"q_heads\": \"16\""), {"\"q_heads\" is \"16\""}},
      {changed(kOther, "{\"p32\": \"maybe\"}"), {"p32=maybe", "off, on"}},
      {changed(kOther, "7"), {"\"prefill\" must be an object"}},
      {changed(kOther, "{}, \"prompt\": {}"), {"\"prefill\" and its alias \"prompt\""}},
      {changed(kOther, "{\"p32\": \"on\"}"),
       {"entries[0] (A)", "p32=on for prefill", "p32=off for decode", "two sets of bits"}},
      {changed(kOther, "{\"arith\": \"mma32\"}"), {"arith=mma32 for prefill", "two sets of bits"}},
      {changed(kOther, "{\"softcap\": \"on\"}"), {"softcap=on for prefill"}},
      {changed(kOther, "{\"window\": 1000}"), {"window=1000 for prefill"}},
      {changed("\"layers\": \"sliding\"", "\"layers\": \"sliding\", \"family\": \"rows\""),
       {"entries[0] (A)", "no family \"rows\"", "window_rows"}},
      {changed("\"window\": 1024,", "\"window\": 1024, \"form\": \"decode\","),
       {"every entry has both forms"}},
      {changed("\"model\": \"B\"", "\"model\": \"\""), {"entries[1]", "\"model\" must be a text"}},
      {changed("\"reason\": \"sparse\"", "\"reason\": null"),
       {"not_served[0] (C)", "\"reason\" must be a text"}},
      {changed("\"source\": \"s\", ", ""), {"not_served[0] (C)", "\"source\""}},
  }));
  const auto manifest = read_manifest("mine.json", row.text);
  REQUIRE_FALSE(manifest);
  INFO(manifest.error().message);
  CHECK(manifest.error().code == ErrorCode::kInvalidArgument);
  CHECK(manifest.error().message.starts_with("manifest mine.json"));
  CHECK(manifest.error().message.find('\n') == std::string::npos);
  for (const std::string& part : row.says) {
    CHECK(manifest.error().message.find(part) != std::string::npos);
  }
}

TEST_CASE("a manifest may say prompt for prefill and name its family", "[specializer][manifest]") {
  const auto manifest = read_manifest("small.json", kGood);
  const auto alias = read_manifest("small.json", changed("\"prefill\"", "\"prompt\""));
  const auto named = read_manifest(
      "small.json", changed("\"model\": \"A\",", "\"model\": \"A\", \"family\": \"window_rows\","));
  REQUIRE(manifest);
  REQUIRE(alias);
  REQUIRE(named);
  CHECK(alias->entries.front().shapes == manifest->entries.front().shapes);
  CHECK(named->entries.front().shapes == manifest->entries.front().shapes);
}

TEST_CASE("a manifest need not say what is not served", "[specializer][manifest]") {
  const std::string text = kGood.substr(0, kGood.find(",\n \"not_served\""));
  const auto manifest = read_manifest("mine.json", text + "}");
  REQUIRE(manifest);
  CHECK(manifest->entries.size() == 2);
  CHECK(manifest->not_served.empty());
  CHECK_FALSE(read_manifest("mine.json", text + ", \"not_served\": null}"));
}

TEST_CASE("a manifest cut anywhere is refused", "[specializer][manifest]") {
  for (std::size_t size = 0; size < kGood.size(); ++size) {
    if (read_manifest("cut.json", std::string_view(kGood).substr(0, size))) FAIL(size);
  }
  CHECK(read_manifest("whole.json", kGood));
}

TEST_CASE("every layer of the model table is served by a shipped manifest or has a reason",
          "[specializer][manifest]") {
  const std::vector<Manifest> manifests = shipped();
  const Json table = Json::parse(test::read_text(test::data_path("models.json")));
  std::size_t served = 0, listed = 0;
  for (const Json& row : table["layers"]) {
    const std::string model = row["model"], layers = row["layers"];
    INFO(model << ", " << layers);
    std::size_t found = 0;
    bool by_another_family = false;
    for (const Manifest& manifest : manifests) {
      for (const ManifestEntry& entry : manifest.entries) {
        if (entry.model != model || entry.layers != layers) continue;
        if (entry.family != families().front()) {
          by_another_family = true;
          continue;
        }
        ++found;
        ++served;
        CHECK(can_be_served(row));
        const auto shape = typed_of<WindowRowsShape>(entry.shapes.front());
        CHECK(shape.head_dim == row["head_dim"]);
        CHECK(shape.gqa_ratio * row["kv_heads"].get<std::uint32_t>() == row["q_heads"]);
        CHECK(shape.window == (row["window"].is_null() ? 0 : row["window"].get<std::uint32_t>()));
        CHECK((shape.softcap == Switch::kOn) == !row["softcap"].is_null());
        CHECK((shape.sinks == Switch::kOn) == row["sinks"].get<bool>());
        if (shape.window > 0) {
          // Room for the window and a prefill chunk of 512 rows.
          CHECK(shape.kv_layout.kind == KvLayoutKind::kRing);
          CHECK(shape.kv_layout.length >= shape.window + 512 - 1);
        }
        CHECK_FALSE(entry.source.empty());
      }
      for (const NotServed& entry : manifest.not_served) {
        if (entry.model != model || entry.layers != layers) continue;
        ++found;
        ++listed;
        CHECK_FALSE(can_be_served(row));
      }
    }
    if (found == 0 && by_another_family) {
      ++found;
      ++served;
    }
    CHECK(found == 1);
  }
  CHECK(served + listed == table["layers"].size());
  CHECK(served > 50);
}

TEST_CASE("the shipped manifests' decode shapes all have a kernel on every target",
          "[specializer][manifest]") {
  std::set<std::string> shapes;
  for (const Manifest& manifest : shipped()) {
    for (const Shape& shape : distinct_shapes(manifest)) {
      if (&shape.family() != families().front()) continue;
      if (typed_of<WindowRowsShape>(shape).form != Form::kDecode) continue;
      shapes.insert(to_json(shape));
      for (const std::string_view name : known_targets()) {
        const auto served = serve(shape, *parse_target(name));
        INFO(manifest.name << ' ' << name);
        CHECK(served);
      }
    }
  }
  CHECK(shapes.size() >= 10);
  CHECK(shapes.size() <= 40);
}

}  // namespace broach::specializer
