#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "cache/cache.hpp"
#include "specializer/plan.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/tools/made_objects.hpp"
#include "tests/tools/program.hpp"
#include "tools/broach/warm_request.hpp"

using namespace broach;
using namespace broach::test;
using Json = nlohmann::json;

namespace {

namespace fs = std::filesystem;

constexpr char kCompiler[] = "NVRTC 13.0 build 1";

/// What a manifest's model needs on a target, as objects that a compiler of this name made.
std::vector<cache::Object> needed_objects(const std::string& compiler,
                                          const std::string& target = "sm_90a") {
  cache::CacheOptions nowhere;
  nowhere.notice = [](std::string_view) {};
  const auto cache = cache::Cache::open(nowhere);
  tool::WarmRequest request;
  request.manifests = {"gemma-4"};
  request.models = {"Gemma 4 12B"};
  request.targets = {target};
  const auto list = tool::list_jobs(request, *cache);
  REQUIRE(list);
  REQUIRE_FALSE(list->jobs.empty());
  std::vector<cache::Object> objects;
  for (const tool::WarmJob& job : list->jobs) {
    cache::Object object = made_object("");
    object.key = specializer::key_of(job.plan, compiler);
    object.description = {job.plan.family,
                          job.plan.target.name,
                          job.plan.shape_json,
                          specializer::source_hash(job.plan),
                          compiler,
                          std::string(specializer::name_of(job.plan.kind))};
    objects.push_back(std::move(object));
  }
  return objects;
}

/// One that makes bundles, one that takes them; the machine of neither has NVRTC.
struct Machines {
  Machines() {
    fs::create_directories(maker.home());
    fs::create_directories(taker.home());
    for (Program* program : {&maker, &taker}) program->set("BROACH_NVRTC", "/nowhere/libnvrtc.so");
  }

  void fill(const std::vector<cache::Object>& objects) const {
    for (const cache::Object& object : objects) publish_in(maker.cache(), object);
  }

  void make_key() const {
    REQUIRE(maker.run({"key", "generate", key.string(), "--name", "release"}).status == 0);
  }

  void trust_key() const {
    REQUIRE(taker.run({"key", "trust", key.string() + ".pub"}).status == 0);
  }

  Ended export_all(const std::vector<std::string>& more = {}) const {
    std::vector<std::string> words = {"export", "-o", bundle.string(), "--json"};
    words.insert(words.end(), more.begin(), more.end());
    return maker.run(words);
  }

  std::size_t objects_taken() const { return Json::parse(taker.run({"ls", "--json"}).out).size(); }

  TempDir dir;
  Program maker{dir.path() / "maker"};
  Program taker{dir.path() / "taker"};
  fs::path key = dir.path() / "key";
  fs::path bundle = dir.path() / "kernels.broach";
};

std::string bytes_of(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void write_bytes(const fs::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

bool has(const std::string& text, std::string_view part) {
  UNSCOPED_INFO(text);
  return text.find(part) != std::string::npos;
}

const std::vector<std::string> kCoverage = {"coverage", "gemma-4", "--model", "Gemma 4 12B",
                                            "--target", "sm_90a",  "--json"};

std::vector<std::string> coverage(const std::vector<std::string>& more = {}) {
  std::vector<std::string> words = kCoverage;
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

}  // namespace

TEST_CASE("a signed bundle goes from one machine to another and serves there", "[tools][bundle]") {
  const Machines machines;
  const auto objects = needed_objects(kCompiler);
  machines.fill(objects);
  machines.make_key();
  machines.trust_key();
  const Ended exported = machines.export_all({"--sign", machines.key.string()});
  CAPTURE(exported.err);
  REQUIRE(exported.status == 0);
  CHECK(Json::parse(exported.out)["objects"] == objects.size());

  const Ended imported = machines.taker.run({"import", machines.bundle.string(), "--json"});
  CAPTURE(imported.err);
  REQUIRE(imported.status == 0);
  const Json json = Json::parse(imported.out);
  CHECK(json["objects"] == objects.size());
  CHECK(json["already_there"] == 0);
  CHECK(json["signed_by"] == Json::parse(exported.out)["signed_by"]);
  CHECK(machines.objects_taken() == objects.size());
  CHECK(machines.taker.run({"verify"}).status == 0);
  const Ended again = machines.taker.run({"import", machines.bundle.string(), "--json"});
  CHECK(Json::parse(again.out)["already_there"] == objects.size());
}

TEST_CASE("a bundle is the same when it is made again, and on another machine", "[tools][bundle]") {
  const Machines machines;
  auto objects = needed_objects(kCompiler);
  machines.fill(objects);
  machines.make_key();
  REQUIRE(machines.export_all({"--sign", machines.key.string()}).status == 0);
  const std::string first = bytes_of(machines.bundle);
  REQUIRE(machines.export_all({"--sign", machines.key.string()}).status == 0);
  CHECK(bytes_of(machines.bundle) == first);

  const Program other(machines.dir.path() / "other");
  fs::create_directories(other.home());
  for (cache::Object& object : objects) {
    object.provenance.created_unix_ms += 1;
    object.provenance.compile_ms = 3;
    publish_in(other.cache(), object);
  }
  REQUIRE(other.run({"export", "-o", machines.bundle.string(), "--sign", machines.key.string()})
              .status == 0);
  CHECK(bytes_of(machines.bundle) == first);
}

TEST_CASE("an export takes the targets, families and manifests that it names", "[tools][bundle]") {
  const Machines machines;
  const auto nvidia = needed_objects(kCompiler);
  machines.fill(nvidia);
  machines.fill(needed_objects("hiprtc test", "gfx90a"));
  const auto count = [&](const std::vector<std::string>& more) {
    const Ended ended = machines.export_all(more);
    return ended.status == 0 ? Json::parse(ended.out)["objects"].get<std::size_t>() : 0;
  };
  CHECK(count({"--target", "sm_90a"}) == nvidia.size());
  CHECK(count({}) > nvidia.size());
  CHECK(count({"--family", "window_rows", "--target", "sm_90a"}) == nvidia.size());
  CHECK(count({"gemma-4", "--model", "Gemma 4 12B", "--target", "sm_90a"}) == nvidia.size());
  CHECK(count({"gemma-4", "--model", "Gemma 4 12B", "--target", "sm_90a", "--form", "decode"}) <
        nvidia.size());
  CHECK(machines.export_all({"--family", "rows"}).status == 2);  // No such family.

  fs::remove(machines.bundle);
  const Ended missing = machines.export_all({"gemma-4", "--target", "sm_90a"});
  CHECK(missing.status == 1);  // Another model of the manifest was not warmed.
  CHECK(has(missing.err, "are in no cache layer"));
  CHECK_FALSE(fs::exists(machines.bundle));
}

TEST_CASE("what should not be imported is refused by name, and nothing of it is kept",
          "[tools][bundle]") {
  const Machines machines;
  machines.fill(needed_objects(kCompiler));
  machines.make_key();
  const auto refused = [&](int status, std::string_view why) {
    const Ended ended = machines.taker.run({"import", machines.bundle.string()});
    CHECK(ended.status == status);
    CHECK(has(ended.err, why));
    CHECK(has(ended.err, machines.bundle.string()));
    CHECK(machines.objects_taken() == 0);
  };
  SECTION("an unsigned bundle, unless it is vouched for") {
    REQUIRE(machines.export_all().status == 0);
    refused(4, "it is not signed");
    CHECK(machines.taker.run({"import", machines.bundle.string(), "--unsigned"}).status == 0);
    CHECK(machines.objects_taken() > 0);
  }
  SECTION("a stranger's bundle") {
    REQUIRE(machines.export_all({"--sign", machines.key.string()}).status == 0);
    refused(4, "not trusted");
  }
  SECTION("a key that is trusted no more") {
    REQUIRE(machines.export_all({"--sign", machines.key.string()}).status == 0);
    machines.trust_key();
    const Json keys = Json::parse(machines.taker.run({"key", "ls", "--json"}).out);
    REQUIRE(keys["keys"].size() == 1);
    CHECK(keys["keys"][0]["name"] == "release");
    REQUIRE(machines.taker.run({"key", "distrust", keys["keys"][0]["id"]}).status == 0);
    refused(4, "not trusted");
  }
  SECTION("a changed byte in the index, in the signature, in an object") {
    machines.trust_key();
    REQUIRE(machines.export_all({"--sign", machines.key.string()}).status == 0);
    const std::string whole = bytes_of(machines.bundle);
    const auto changed = [&](std::size_t at) {
      std::string bytes = whole;
      bytes[at] = static_cast<char>(bytes[at] ^ 1);
      write_bytes(machines.bundle, bytes);
    };
    changed(120);
    refused(4, "does not match");
    changed(whole.size() - 1);
    refused(1, "do not have the digest");
    write_bytes(machines.bundle, whole);
    CHECK(machines.taker.run({"import", machines.bundle.string()}).status == 0);
  }
  SECTION("a truncated file, an empty one, another file") {
    machines.trust_key();
    REQUIRE(machines.export_all({"--sign", machines.key.string()}).status == 0);
    const std::string whole = bytes_of(machines.bundle);
    write_bytes(machines.bundle, whole.substr(0, whole.size() / 2));
    refused(1, "truncated");
    write_bytes(machines.bundle, "");
    refused(1, "at least");
    write_bytes(machines.bundle, std::string(5000, 'x'));
    refused(1, "not a bundle's");
  }
}

TEST_CASE("a bundle is a layer where it lies", "[tools][bundle]") {
  Machines machines;
  const auto objects = needed_objects(kCompiler);
  machines.fill(objects);
  machines.make_key();
  machines.trust_key();
  REQUIRE(machines.export_all({"--sign", machines.key.string()}).status == 0);
  machines.taker.set("BROACH_CACHE_PATH", machines.bundle.string());

  const Json layers = Json::parse(machines.taker.run({"doctor", "--json"}).out)["layers"];
  bool shown = false;
  for (const Json& layer : layers) {
    if (layer["name"] != machines.bundle.string()) continue;
    shown = true;
    CHECK(layer["usable"] == true);
    CHECK(has(layer["journal"].get<std::string>(), "signed by release"));
  }
  CHECK(shown);
  const Json listed =
      Json::parse(machines.taker.run({"ls", "--layer", machines.bundle.string(), "--json"}).out);
  REQUIRE(listed.size() == objects.size());
  CHECK(listed[0]["layer"]["name"] == machines.bundle.string());
  CHECK(machines.taker.run({"ls", "--layer", "elsewhere"}).status == 3);
  const Json none = Json::parse(machines.taker.run({"ls", "--layer", "user", "--json"}).out);
  CHECK(none.empty());

  const Json shape = Json::parse(objects[0].description.shape_json);
  std::string words = "window_rows";
  for (const auto& [name, value] : shape.items()) {
    if (name == "family") continue;
    words += " " + name + "=" + (value.is_string() ? value.get<std::string>() : value.dump());
  }
  const Ended explained = machines.taker.run({"explain", words, "--target", "sm_90a", "--json"});
  CAPTURE(words, explained.err);
  CHECK(explained.status == 0);
  const Json answer = Json::parse(explained.out);
  CHECK(answer["layer"]["name"] == machines.bundle.string());
  CHECK(answer["compilers"] == "any");
}

TEST_CASE("coverage proves that nothing is missing, or says what is", "[tools][bundle]") {
  const Machines machines;
  auto objects = needed_objects(kCompiler);
  machines.make_key();
  machines.trust_key();

  SECTION("in the cache's layers") {
    machines.fill(objects);
    const Ended whole = machines.maker.run(coverage({"--offline"}));
    CAPTURE(whole.err);
    CHECK(whole.status == 0);
    const Json json = Json::parse(whole.out);
    CHECK(json["covered"] == objects.size());
    CHECK(json["missing"] == 0);
    CHECK(json["entries"][0]["compiler"] == kCompiler);
    // Without a compiler a look-up takes any one's, so the same holds; it is said.
    const Ended here = machines.maker.run(coverage());
    CHECK(here.status == 0);
    CHECK(has(here.err, "no compiler"));
  }
  SECTION("in a bundle alone, whatever the cache holds") {
    machines.fill(objects);
    const fs::path part = machines.dir.path() / "part.broach";
    REQUIRE(machines.maker
                .run({"export", "gemma-4", "--model", "Gemma 4 12B", "--target", "sm_90a", "--form",
                      "decode", "-o", part.string(), "--sign", machines.key.string()})
                .status == 0);
    REQUIRE(machines.export_all({"--sign", machines.key.string()}).status == 0);
    const auto in = [&](const fs::path& place) {
      return machines.taker.run(coverage({"--offline", "--in", place.string()}));
    };
    CHECK(in(machines.bundle).status == 0);
    CHECK(in(machines.maker.cache()).status == 0);
    const Ended lacking = in(part);
    CHECK(lacking.status == 1);
    const Json json = Json::parse(lacking.out);
    CHECK(json["missing"].get<int>() > 0);
    for (const Json& row : json["entries"]) {
      if (row["covered"] == true) continue;
      std::set<std::string> fields;
      for (const Json& difference : row["nearest"]["differences"]) {
        fields.insert(difference["field"].get<std::string>());
      }
      CHECK(fields.contains("shape.form"));
      CHECK_FALSE(fields.contains("compiler"));
    }
    CHECK(in(machines.dir.path() / "absent").status == 4);
  }
  SECTION("a bundle or directory that may not be used covers nothing") {
    machines.fill(objects);
    const auto refused = [&](const fs::path& place, int status, std::string_view why) {
      for (const std::vector<std::string>& words :
           {coverage({"--offline", "--in", place.string()}),
            std::vector<std::string>{"diff", place.string(), place.string()}}) {
        const Ended ended = machines.taker.run(words);
        CHECK(ended.status == status);
        CHECK(has(ended.err, why));
        CHECK(has(ended.err, place.string()));
      }
    };
    REQUIRE(machines.export_all().status == 0);
    refused(machines.bundle, 4, "it is not signed");
    CHECK(
        machines.taker.run(coverage({"--offline", "--in", machines.bundle.string(), "--unsigned"}))
            .status == 0);
    const fs::path stranger = machines.dir.path() / "stranger";
    REQUIRE(machines.maker.run({"key", "generate", stranger.string()}).status == 0);
    REQUIRE(machines.export_all({"--sign", stranger.string()}).status == 0);
    refused(machines.bundle, 4, "not trusted");
    const fs::path shared = machines.dir.path() / "shared";
    fs::copy(machines.maker.cache(), shared, fs::copy_options::recursive);
    fs::permissions(shared, fs::perms::all);
    const Ended open = machines.maker.run(coverage({"--offline", "--in", shared.string()}));
    CHECK(open.status == 4);
    CHECK(has(open.err, "could plant code"));
    write_bytes(machines.bundle, std::string(5000, 'x'));
    refused(machines.bundle, 1, "not a bundle's");
    fs::remove(machines.bundle);
    refused(machines.bundle, 4, "No such file");
    CHECK(machines.taker.run({"import", machines.bundle.string()}).status == 4);
  }
  SECTION("a binary that another version's sources made is none") {
    objects[0].key = cache::KeyBuilder()
                         .field("family", "window_rows")
                         .field("source.name", "main.cu")
                         .field("source.bytes", "older")
                         .finish();
    objects[0].description.source_hash.assign("older");
    machines.fill(objects);
    const Ended stale = machines.maker.run(coverage({"--offline"}));
    CHECK(stale.status == 1);
    CHECK(Json::parse(stale.out)["missing"] == 1);
  }
  SECTION("a damaged object is none, and it is said") {
    machines.fill(objects);
    REQUIRE(machines.export_all({"--sign", machines.key.string()}).status == 0);
    std::string bytes = bytes_of(machines.bundle);
    bytes.back() = static_cast<char>(bytes.back() ^ 1);
    write_bytes(machines.bundle, bytes);
    const Ended damaged =
        machines.taker.run(coverage({"--offline", "--in", machines.bundle.string()}));
    CHECK(damaged.status == 1);
    const Json json = Json::parse(damaged.out);
    CHECK(json["missing"] == 1);
    // The index of a bundle tells what should be there, so that the row names the damage.
    for (const Json& row : json["entries"]) {
      if (row["covered"] == false) CHECK(row["nearest"].is_object());
    }
  }
}

TEST_CASE("a warmed host binary survives the way through a bundle", "[tools][bundle]") {
  const TempDir dir;
  const Program maker(dir.path() / "maker");
  const Program taker(dir.path() / "taker");
  give_warmed_cache(maker);
  const fs::path bundle = dir.path() / "host.broach";
  REQUIRE(maker.run({"export", "-o", bundle.string()}).status == 0);
  fs::create_directories(taker.home());
  REQUIRE(taker.run({"import", "--unsigned", bundle.string()}).status == 0);
  const Ended warmed = taker.run(warm_arguments({"--json"}));
  CHECK(warmed.status == 0);
  CHECK(Json::parse(warmed.out)["compiled"] == 0);
  CHECK(Json::parse(warmed.out)["hits"] == 1);
}
