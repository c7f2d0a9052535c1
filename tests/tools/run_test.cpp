#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

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

TEST_CASE("a prefill runs on the host and every output is in range", "[tools][run]") {
  const TempDir dir;
  const Program program(dir.path());
  const auto run = [&](const std::string& shape_words, const std::string& rows,
                       const std::vector<std::string>& more) {
    std::vector<std::string> words = {
        "run",
        "window_rows head_dim=64 gqa_ratio=2 window=40 kv_layout=ring(130) form=prefill" +
            shape_words,
        "--rows",
        rows,
        "--kv-heads",
        "2",
        "--target",
        "host",
        "--launches",
        "1",
        "--json"};
    words.insert(words.end(), more.begin(), more.end());
    return program.run(words);
  };
  const auto check_run = [&](const Ended& ended) {
    CAPTURE(ended.err);
    REQUIRE(ended.status == 0);
    const Json json = Json::parse(ended.out);
    check_report(json);
    CHECK(json["checked"] == 70 * 4 * 64);
    CHECK(json["shape"]["form"] == "prefill");
    CHECK(json["shape"]["arith"] == "tile64_ex2");
  };
  check_run(run("", "70", {"--p0", "0"}));
  check_run(run("", "70", {"--p0", "300", "--hi", "9:33"}));  // The ring's end lies in the window.
  check_run(run(" p32=on", "70", {"--p0", "5000"}));

  const Ended short_ring = run("", "92", {"--p0", "0"});
  CHECK(short_ring.status == 2);
  CHECK(short_ring.err.find("ring of 130") != std::string::npos);
  const Ended no_rows = run("", "70", {"--hi", "60:70"});
  CHECK(no_rows.status == 2);
  CHECK(no_rows.err.find("rows 60..70") != std::string::npos);
  CHECK(run("", "70", {"--hi", "40-50"}).status == 2);
}

TEST_CASE("rows of qk_rows and sparse_rows run on the host and every output is in range",
          "[tools][run]") {
  const TempDir dir;
  const Program program(dir.path());
  const auto run = [&](std::vector<std::string> words) {
    words.insert(words.begin(), "run");
    words.insert(words.end(), {"--target", "host", "--launches", "1", "--json"});
    return program.run(words);
  };
  // An output a query, K and V head of a row; every position past 40,000 turns by its own angle.
  const Ended rope = run({"qk_rows", "--rows", "3"});
  CAPTURE(rope.err);
  REQUIRE(rope.status == 0);
  const Json prepared = Json::parse(rope.out);
  check_report(prepared);
  CHECK(prepared["case"] == "qk_rows of 3 rows up to position 40000");
  CHECK(prepared["checked"] == 3 * (16 + 2 * 4) * 256);
  const Ended norm =
      run({"qk_rows head_dim=64 gqa_ratio=2 rope_dim=32 rope_style=interleaved "
           "norm=rms order=norm_rope kv_layout=paged(16) dtype=f16",
           "--p0", "30", "--rows", "20", "--kv-heads", "1"});
  CAPTURE(norm.err);
  REQUIRE(norm.status == 0);
  check_report(Json::parse(norm.out));
  CHECK(Json::parse(norm.out)["case"] == "qk_rows of 20 rows up to position 49");

  for (const std::string tile : {"scalar", "mma"}) {
    const Ended sparse = run({"sparse_rows head_dim=64 gqa_ratio=2 compress_ratio=4 tile=" + tile,
                              "--position", "700", "--kv-heads", "1"});
    CAPTURE(tile, sparse.err);
    REQUIRE(sparse.status == 0);
    const Json attended = Json::parse(sparse.out);
    check_report(attended);
    CHECK(attended["checked"] == 3 * 2 * 64);
  }
}

TEST_CASE("a size that a problem cannot have is refused by name before anything runs",
          "[tools][run]") {
  const TempDir dir;
  const Program program(dir.path());
  const std::string linear = "window_rows head_dim=64 gqa_ratio=2";
  const std::vector<std::pair<std::vector<std::string>, std::string>> rows = {
      {{linear, "--kv-heads", "-1"}, "--kv-heads is -1"},
      {{linear, "--kv-heads", "0"}, "--kv-heads is 0"},
      {{linear, "--rows", "0"}, "--rows is 0"},
      {{linear, "--position", "-5"}, "--position is -5"},
      {{linear, "--kv-heads", "1", "--position", "2147483647"}, "--position is 2147483647"},
      {{linear, "--p0", "3"}, "--position"},
      {{"qk_rows", "--rows", "1025"}, "a ring of 1024 positions holds at most 1024"},
      {{"qk_rows", "--position", "1048576"}, "--position is 1048576"},
      {{"qk_rows", "--p0", "3", "--position", "9"}, "one is enough"},
      {{"qk_rows", "--hi", "1:2"}, "--hi is a prefill's"},
      {{"sparse_rows", "--kv-heads", "0"}, "--kv-heads is 0"},
      {{"sparse_rows", "--rows", "9", "--position", "7"}, "--position is 7; it must be 8 to"},
      {{linear + " form=prefill", "--p0", "2147483647"}, "--p0 is 2147483647"},
      {{linear + " form=prefill", "--position", "3"}, "--p0"},
      {{linear + " kv_layout=ring(130) window=40 form=prompt", "--p0", "2147483600"}, "--p0 is"},
  };
  for (const auto& [sizes, part] : rows) {
    std::vector<std::string> arguments = {"run", "--target", "host"};
    arguments.insert(arguments.end(), sizes.begin(), sizes.end());
    const Ended ended = program.run(arguments);
    CAPTURE(ended.err);
    CHECK(ended.status == 2);
    CHECK(ended.err.find(part) != std::string::npos);
  }
}

TEST_CASE("the Gemma-4-like prefill runs on the GPU", "[tools][run][gpu]") {
  const TempDir dir;
  const Program program(dir.path());
  const Ended ended = program.run({"run", "window_rows form=prefill p32=on", "--rows", "512",
                                   "--hi", "40:300", "--device", "cuda", "--json"});
  if (ended.status == 3) BROACH_SKIP("no CUDA device");
  CAPTURE(ended.err);
  REQUIRE(ended.status == 0);
  check_report(Json::parse(ended.out));
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
