#include <nlohmann/json.hpp>
#include <string>

#include "tests/support/catch.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/tools/program.hpp"

using namespace broach::test;
using Json = nlohmann::json;

namespace {

void check_report(const Json& json) {
  CHECK(json["checked"] > 0);
  CHECK(json["out_of_range"] == 0);
  CHECK(json["nonfinite_mismatch"] == 0);
  CHECK(json["pinned"].get<int>() + json["in_range"].get<int>() == json["checked"].get<int>());
  CHECK(json["median_us"] > 0);
  CHECK(json["key"].get<std::string>().size() == 32);
}

}  // namespace

TEST_CASE("the Gemma-4-like decode runs on the host and every output is in range", "[tools][run]") {
  const TempDir dir;
  const Program program(dir.path());
  give_warmed_cache(program);
  const Ended ended =
      program.run({"run", "window_rows", "--target", "host", "--launches", "1", "--json"});
  CAPTURE(ended.err);
  REQUIRE(ended.status == 0);
  const Json json = Json::parse(ended.out);
  check_report(json);
  CHECK(json["shape"]["head_dim"] == 256);
  CHECK(json["compiled"] == false);
}

TEST_CASE("a shape of one's own is compiled and runs where no cache can be kept", "[tools][run]") {
  const TempDir dir;
  Program program(dir.path());
  program.set("HOME", "/proc/nowhere");
  const Ended ended =
      program.run({"run", "window_rows head_dim=64 gqa_ratio=3", "--target", "host", "--rows", "1",
                   "--kv-heads", "1", "--position", "70", "--launches", "1", "--json"});
  CAPTURE(ended.err);
  REQUIRE(ended.status == 0);
  const Json json = Json::parse(ended.out);
  check_report(json);
  CHECK(json["compiled"] == true);
  CHECK(ended.err.find("/proc/nowhere") != std::string::npos);
}

TEST_CASE("the Gemma-4-like decode runs on the GPU", "[tools][run][gpu]") {
  const TempDir dir;
  const Program program(dir.path());
  const Ended ended = program.run({"run", "window_rows", "--device", "cuda", "--json"});
  if (ended.status == 3) BROACH_SKIP("no CUDA device");
  CAPTURE(ended.err);
  REQUIRE(ended.status == 0);
  check_report(Json::parse(ended.out));
}
