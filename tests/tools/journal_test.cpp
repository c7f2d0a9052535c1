#include <ctime>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cache/cache.hpp"
#include "specializer/target.hpp"
#include "specializer/window_rows/shape.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/support/window_rows_shape.hpp"
#include "tests/tools/program.hpp"
#include "tools/broach/warm_request.hpp"

using namespace broach;
using namespace broach::test;
using Json = nlohmann::json;

namespace {

std::unique_ptr<cache::Cache> open_in(const Program& program) {
  cache::CacheOptions options;
  options.directories = {program.cache()};
  return cache::Cache::open(options);
}

WindowRowsShape shape() {
  WindowRowsShape made;
  made.head_dim = 128;
  made.gqa_ratio = 4;
  return made;
}

/// A row as a runtime on a target writes it: with every default replaced.
cache::JournalRow missed_on(const std::string& target, const WindowRowsShape& asked) {
  const WindowRowsShape resolved = test::resolved(asked, *specializer::parse_target(target));
  return {"window_rows", specializer::to_json(resolved), target, 1, 1};
}

}  // namespace

TEST_CASE("the journal is listed and cleared", "[tools][journal]") {
  const TempDir dir;
  const Program program(dir.path());
  open_in(program)->record_miss(missed_on("sm_90a", shape()));
  open_in(program)->record_miss(missed_on("sm_90a", shape()));
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"journal", "--json"}, {"journal", "ls", "--json"}}) {
    const Ended listed = program.run(words);
    CHECK(listed.status == 0);
    const Json rows = Json::parse(listed.out);
    REQUIRE(rows.size() == 1);
    CHECK(rows[0]["count"] == 2);
    CHECK(rows[0]["target"] == "sm_90a");
    CHECK(rows[0]["shape"]["head_dim"] == 128);
  }
  const Ended cleared = program.run({"journal", "clear"});
  CHECK(cleared.status == 0);
  CHECK(cleared.out == "cleared 1 shape\n");
  CHECK(Json::parse(program.run({"journal", "ls", "--json"}).out).empty());
  CHECK(Json::parse(program.run({"journal", "clear", "--json"}).out)["cleared"] == 0);
  CHECK(program.run({"journal", "forget"}).status == 2);
}

TEST_CASE("a missed shape is warmed for its own target and for any other", "[tools][journal]") {
  const TempDir dir;
  const Program program(dir.path());
  const auto cache = open_in(program);
  cache->record_miss(missed_on("sm_90a", shape()));
  tool::WarmRequest request;
  request.from_journal = true;
  const auto own = tool::list_jobs(request, *cache);
  REQUIRE(own);
  REQUIRE(own->jobs.size() == 1);
  CHECK(own->jobs[0].plan.target.name == "sm_90a");
  CHECK(own->jobs[0].plan.shape_json == cache->journal()->front().shape_json);

  request.targets = {"gfx90a", "sm_80", "host-x86-64-v3"};
  const auto others = tool::list_jobs(request, *cache);
  REQUIRE(others);
  CHECK(others->without_kernel == 0);
  REQUIRE(others->jobs.size() == 3);
  for (std::size_t i = 0; i < others->jobs.size(); ++i) {
    // What was the default of one target is each other target's own default.
    const auto& plan = others->jobs[i].plan;
    CHECK(plan.target.name == request.targets[i]);
    const auto planned = test::window_rows_from_json(plan.shape_json);
    REQUIRE(planned);
    CHECK(*planned == test::resolved(shape(), plan.target));
  }
}

TEST_CASE("an arithmetic that was asked for by name stays for other targets", "[tools][journal]") {
  const TempDir dir;
  const Program program(dir.path());
  const auto cache = open_in(program);
  WindowRowsShape named = shape();
  const Arith usual = test::resolved(named, *specializer::parse_target("sm_90a")).arith;
  named.arith = usual == Arith::kChunk256 ? Arith::kTile64 : Arith::kChunk256;
  cache->record_miss(missed_on("sm_90a", named));
  tool::WarmRequest request;
  request.from_journal = true;
  request.targets = {"host-x86-64-v3"};
  const auto list = tool::list_jobs(request, *cache);
  REQUIRE(list);
  REQUIRE(list->jobs.size() == 1);
  CHECK(test::window_rows_from_json(list->jobs[0].plan.shape_json)->arith == named.arith);
}

TEST_CASE("a row of the journal that says nothing is named, and the others are warmed",
          "[tools][journal]") {
  const TempDir dir;
  const Program program(dir.path());
  give_warmed_cache(program);
  const std::string host = Json::parse(cold_warm_output())["entries"][0]["target"];
  {
    const auto cache = open_in(program);
    const std::string warmed = cache->entries()->front().description.shape_json;
    cache->record_miss({"window_rows", "{\"head_dim\": 25", host, 9, 1});
    cache->record_miss({"sparse_rows", "{}", host, 8, 1});
    cache->record_miss({"window_rows", warmed, "sm_42", 7, 1});
    cache->record_miss({"window_rows", warmed, host, 1, 1});
  }
  const Ended ended = program.run({"warm", "--from-journal", "--json"});
  CAPTURE(ended.err);
  CHECK(ended.status == 1);
  const Json json = Json::parse(ended.out);
  CHECK(json["hits"] == 1);
  CHECK(json["failed"] == 0);
  REQUIRE(json["refused_rows"].size() == 3);
  for (const char* part : {"\"head_dim\": 25 for", "sparse_rows", "sm_42"}) {
    CHECK(ended.err.find(part) != std::string::npos);
  }
  // For a target that is named, where a row was missed does not matter.
  const Ended named = program.run({"warm", "--from-journal", "--target", host, "--json"});
  CHECK(named.status == 1);
  CHECK(Json::parse(named.out)["refused_rows"].size() == 2);
  // A target that nobody can name is the command line's fault.
  CHECK(program.run({"warm", "--from-journal", "--target", "sm_42"}).status == 2);
  REQUIRE(program.run({"journal", "clear"}).status == 0);
  CHECK(program.run({"warm", "--from-journal"}).status == 0);
}

TEST_CASE("failed compiles are listed with log, toolchain and expiry", "[tools][journal]") {
  const TempDir dir;
  const Program program(dir.path());
  const auto key = cache::KeyBuilder().field("family", "made").finish().key;
  const std::int64_t day_ms = 86'400'000;
  const std::int64_t now_ms = std::int64_t{std::time(nullptr)} * 1000;
  cache::Failure failure{key,
                         "sm_90a",
                         "NVRTC 13.0.88",
                         "",
                         {ErrorCode::kCompileFailed, "does not compile", "line 1\nline 2"},
                         now_ms - 1000,
                         now_ms + day_ms};
  open_in(program)->remember_failure(failure);
  const Json rows = Json::parse(program.run({"ls", "--failures", "--json"}).out);
  REQUIRE(rows.size() == 1);
  CHECK(rows[0]["key"] == key.hex());
  CHECK(rows[0]["compiler"] == "NVRTC 13.0.88");
  CHECK(rows[0]["error"] == "compile_failed");
  CHECK(rows[0]["log"] == "line 1\nline 2");
  CHECK(rows[0]["expires_unix_ms"] == failure.expires_unix_ms);
  const Ended text = program.run({"ls", "--failures"});
  CHECK(text.status == 0);
  for (const char* part : {"sm_90a", "NVRTC 13.0.88", "does not compile", "    line 2\n"}) {
    CHECK(text.out.find(part) != std::string::npos);
  }
  CHECK(program.run({"ls", "--failures", "--target", "gfx90a"}).out.empty());
}
