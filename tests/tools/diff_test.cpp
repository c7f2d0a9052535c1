#include "tools/broach/cache_diff.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "cache/cache.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/tools/made_objects.hpp"
#include "tests/tools/program.hpp"

using namespace broach::test;
using broach::cache::Object;
using Json = nlohmann::json;
namespace fs = std::filesystem;

namespace {

/// Two cache directories below one home.
struct Pair {
  TempDir dir;
  Program program{dir.path()};
  fs::path a = dir.path() / "a";
  fs::path b = dir.path() / "b";

  void publish(const Object& before, const Object& after) const {
    publish_in(a, before);
    publish_in(b, after);
  }
  Ended diff(const std::vector<std::string>& more = {}) const {
    std::vector<std::string> arguments = {"diff", a, b};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return program.run(arguments);
  }
};

/// The same plan as another toolkit compiles it: another key, no other figure.
Object recompiled(const std::function<void(Object&)>& change = [](Object&) {}) {
  Object object = made_object("new toolkit");
  change(object);
  return object;
}

/// Every file below a directory with when it was last written.
std::map<std::string, fs::file_time_type> files_below(const fs::path& path) {
  std::map<std::string, fs::file_time_type> files;
  for (const auto& entry : fs::recursive_directory_iterator(path)) {
    files[entry.path()] = fs::last_write_time(entry.path());
  }
  return files;
}

}  // namespace

TEST_CASE("caches that differ in keys only have no difference", "[tools][diff]") {
  const Pair pair;
  pair.publish(made_object("old toolkit"), recompiled());
  const Ended text = pair.diff({"--fail-on", "any"});
  CAPTURE(text.out, text.err);
  CHECK(text.status == 0);
  CHECK(text.err.empty());
  CHECK(text.out == "0 changed, 1 the same, 0 only in A, 0 only in B\n");
  const Ended json = pair.diff({"--json"});
  CHECK(json.status == 0);
  CHECK(Json::parse(json.out)["changed"].empty());
  CHECK(Json::parse(json.out)["same"] == 1);
}

TEST_CASE("spills that grew end with 1 under the gates that name them, and no other",
          "[tools][diff]") {
  const Pair pair;
  pair.publish(made_object("old"), recompiled([](Object& o) { o.limits[0].spill_bytes = 16; }));
  CHECK(pair.diff().status == 0);
  CHECK(pair.diff({"--fail-on", "registers", "--fail-on", "bytes"}).status == 0);
  CHECK(pair.diff({"--fail-on", "any"}).status == 1);
  const Ended gated = pair.diff({"--fail-on", "bytes", "--fail-on", "spills", "--json"});
  CHECK(gated.status == 1);
  CHECK(gated.err.find("decode_part's spill_bytes grew from 0 to 16") != std::string::npos);
  const Json json = Json::parse(gated.out);
  REQUIRE(json["changed"].size() == 1);
  REQUIRE(json["changed"][0]["changes"].size() == 1);
  const Json& change = json["changed"][0]["changes"][0];
  CHECK(change["function"] == "decode_part");
  CHECK(change["field"] == "spill_bytes");
  CHECK(change["before"] == 0);
  CHECK(change["after"] == 16);
  CHECK(change["fails"] == true);
}

TEST_CASE("spills that a binary did not state count from none; registers do not", "[tools][diff]") {
  const Pair pair;
  pair.publish(made_object("old"), recompiled([](Object& o) {
                 o.limits[1].spill_bytes = 8;
                 o.limits[1].registers = 40;
               }));
  CHECK(pair.diff({"--fail-on", "spills"}).status == 1);
  CHECK(pair.diff({"--fail-on", "registers"}).status == 0);
}

TEST_CASE("every limit that changed is a row, an AMD chip's too", "[tools][diff]") {
  const Object before = made_object("old");
  const Object after = recompiled([](Object& o) {
    o.limits[0].vgprs = o.limits[0].vgprs.value_or(0) + 1;
    o.limits[0].vgpr_spills = 3;
    o.limits[0].wave_size = 64;
  });
  const auto diff = broach::tool::compare({before}, {after});
  REQUIRE(diff.changed.size() == 1);
  const auto& fields = diff.changed.front().fields;
  REQUIRE(fields.size() == 3);
  CHECK(fields[0].field == "wave_size");
  CHECK(fields[1].field == "vgprs");
  CHECK(fields[2].field == "vgpr_spills");
  CHECK(fields[2].gate == broach::tool::Gate::kSpills);
  CHECK(fields[2].grew());
}

TEST_CASE("registers and bytes have gates, and what shrank passes them", "[tools][diff]") {
  const Pair pair;
  pair.publish(made_object("old"), recompiled([](Object& o) {
                 o.limits[0].registers = 80;
                 o.payload.resize(5000);
               }));
  CHECK(pair.diff({"--fail-on", "registers"}).status == 1);
  CHECK(pair.diff({"--fail-on", "bytes"}).status == 1);
  CHECK(pair.diff({"--fail-on", "spills"}).status == 0);
  CHECK(pair.program.run({"diff", pair.b, pair.a, "--fail-on", "any"}).status == 0);
}

TEST_CASE("compiler, sources and functions that came or went are shown", "[tools][diff]") {
  const Pair pair;
  pair.publish(made_object("old"), recompiled([](Object& o) {
                 o.description.compiler.assign("NVRTC 13.1 test");
                 o.description.source_hash.assign("4567");
                 o.limits[1].function.assign("decode_fold");
               }));
  const Ended ended = pair.diff({"--fail-on", "any"});
  CHECK(ended.status == 0);
  for (const char* part : {"NVRTC 13.1 test", "4567", "decode_fold", "decode_merge"}) {
    CHECK(ended.out.find(part) != std::string::npos);
  }
}

TEST_CASE("entries that one cache lacks are listed and neither cache is written to",
          "[tools][diff]") {
  const Pair pair;
  publish_in(pair.a, made_object("old"));
  Object other = made_object("other");
  other.description.target.assign("sm_121a");
  publish_in(pair.b, other);
  const auto before = files_below(pair.dir.path());
  const Ended ended = pair.diff({"--json"});
  CHECK(ended.status == 0);
  const Json json = Json::parse(ended.out);
  REQUIRE(json["only_before"].size() == 1);
  REQUIRE(json["only_after"].size() == 1);
  CHECK(json["only_before"][0]["target"] == "sm_90a");
  CHECK(json["only_after"][0]["target"] == "sm_121a");
  CHECK(files_below(pair.dir.path()) == before);
}

TEST_CASE("of several binaries of one plan in a cache the one made last is compared",
          "[tools][diff]") {
  Object stale = made_object("stale");
  stale.provenance.created_unix_ms -= 1000;
  stale.limits[0].registers = 200;
  for (const bool stale_first : {true, false}) {
    std::vector<Object> before = {made_object("old")};
    before.insert(stale_first ? before.begin() : before.end(), stale);
    const auto diff = broach::tool::compare(before, {recompiled()});
    CHECK(diff.passed_by == 1);
    CHECK(diff.same == 1);
    CHECK(diff.changed.empty());
  }
}

TEST_CASE("a directory that is no cache or is refused ends with 4 and one line", "[tools][diff]") {
  const Pair pair;
  publish_in(pair.a, made_object("old"));
  const char* why = "";
  SECTION("not there") { why = "No such file"; }
  SECTION("not a cache") {
    fs::create_directory(pair.b);
    why = "objects";
  }
  SECTION("writable by anyone") {
    publish_in(pair.b, made_object("old"));
    chmod(pair.b.c_str(), 0777);
    why = "0777";
  }
  const Ended ended = pair.diff();
  CAPTURE(ended.err);
  CHECK(ended.status == 4);
  CHECK(ended.out.empty());
  CHECK(ended.err.find(pair.b.string()) != std::string::npos);
  CHECK(ended.err.find(why) != std::string::npos);
  CHECK(std::count(ended.err.begin(), ended.err.end(), '\n') == 1);
  CHECK(pair.program.run({"diff", pair.a}).status == 2);
  CHECK(pair.diff({"--fail-on", "colour"}).status == 2);
}

TEST_CASE("a damaged object is named, not passed over", "[tools][diff]") {
  const Pair pair;
  pair.publish(made_object("old"), recompiled());
  for (const auto& entry : fs::recursive_directory_iterator(pair.b / "objects")) {
    if (entry.is_regular_file()) fs::resize_file(entry.path(), entry.file_size() - 1);
  }
  const Ended ended = pair.diff();
  CHECK(ended.status == 1);
  CHECK(ended.err.find(recompiled().key.key.hex()) != std::string::npos);
}

TEST_CASE("two toolchains of one cache are compared by their names", "[tools][diff]") {
  const TempDir dir;
  const Program program(dir.path());
  const auto made_by = [&](const std::string& compiler, std::uint32_t spill_bytes) {
    Object object = made_object(compiler);
    object.description.compiler.assign(compiler);
    object.limits[0].spill_bytes = spill_bytes;
    publish_in(program.cache(), object);
  };
  // Made at one moment, so that "the one made last" cannot settle anything.
  made_by("NVRTC 12.9.86", 0);
  made_by("NVRTC 13.0.88", 16);
  const auto diff = [&](const char* before, const char* after) {
    return program.run({"diff", before, after, "--fail-on", "spills", "--json"});
  };
  const Ended grew = diff("NVRTC 12.9", "NVRTC 13.0");
  CHECK(grew.status == 1);
  const Json changed = Json::parse(grew.out)["changed"];
  REQUIRE(changed.size() == 1);
  CHECK(changed[0]["changes"][0]["before"] == "NVRTC 12.9.86");
  CHECK(grew.err.find("spill_bytes grew from 0 to 16") != std::string::npos);
  CHECK(diff("NVRTC 13.0.88", "NVRTC 12.9.86").status == 0);
  CHECK(diff("12.9", "12.9").status == 0);

  const Ended none = diff("NVRTC 11", "NVRTC 13.0");
  CHECK(none.status == 3);
  const Ended both = diff("NVRTC", "NVRTC 13.0");
  CHECK(both.status == 2);
  for (const Ended* refused : {&none, &both}) {
    CHECK(refused->err.find("NVRTC 12.9.86; NVRTC 13.0.88") != std::string::npos);
  }
}
