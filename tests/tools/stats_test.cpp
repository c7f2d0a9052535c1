#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <sstream>
#include <string>

#include "cache/cache.hpp"
#include "runtime/exposition.hpp"
#include "runtime/metrics.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/tools/made_objects.hpp"
#include "tests/tools/program.hpp"
#include "tools/broach/process_metrics.hpp"

using namespace broach::test;
using Json = nlohmann::json;

namespace {

/// The first line that the exposition format does not allow; empty where all parse.
std::string first_wrong_line(const std::string& text) {
  static const std::regex comment(R"re(# (HELP|TYPE) (broach_[a-z_]+) (.+))re");
  static const std::regex sample(
      R"re((broach_[a-z_]+)(\{[a-z_]+="([^"\\]|\\[\\"n])*")re"
      R"re((,[a-z_]+="([^"\\]|\\[\\"n])*")*\})? \d+(\.\d+)?(e[-+]\d+)?)re");
  std::set<std::string> helped;
  std::set<std::string> typed;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::smatch parts;
    if (std::regex_match(line, parts, comment)) {
      auto& told = parts[1] == "HELP" ? helped : typed;
      const bool known = parts[1] == "HELP" || parts[3] == "counter" || parts[3] == "gauge" ||
                         parts[3] == "histogram";
      if (known && told.insert(parts[2]).second) continue;
    } else if (std::regex_match(line, parts, sample)) {
      // A histogram's samples have the metric's name and an ending.
      const std::string name =
          std::regex_replace(std::string(parts[1]), std::regex("(duration_seconds)_[a-z]+"), "$1");
      if (helped.contains(name) && typed.contains(name)) continue;
    }
    return line.empty() ? "(an empty line)" : line;
  }
  return "";
}

/// A cache of two targets, one of them with two entries, and one missed shape.
void fill(const Program& program) {
  publish_in(program.cache(), made_object("one"));
  publish_in(program.cache(), made_object("two"));
  auto other = made_object("three");
  other.description.target.assign("gfx90a");
  publish_in(program.cache(), other);
  broach::cache::CacheOptions options;
  options.directories = {program.cache()};
  broach::cache::Cache::open(options)->record_miss({"window_rows", "{}", "sm_90a", 3, 1});
}

}  // namespace

TEST_CASE("stats counts what a cache holds by target and family", "[tools][stats]") {
  const TempDir dir;
  const Program program(dir.path());
  fill(program);
  const Ended ended = program.run({"stats", "--json"});
  CAPTURE(ended.err);
  CHECK(ended.status == 0);
  const Json json = Json::parse(ended.out);
  REQUIRE(json["held"].size() == 2);
  CHECK(json["held"][0]["target"] == "gfx90a");
  CHECK(json["held"][0]["entries"] == 1);
  CHECK(json["held"][1]["entries"] == 2);
  CHECK(json["held"][1]["bytes"] > 2 * 4096);
  CHECK(json["total"]["entries"] == 3);
  CHECK(json["total"]["compile_ms"] == 360);
  CHECK(json["journal"]["shapes"] == 1);
  CHECK(json["journal"]["misses"] == 3);
  CHECK(json["quarantine"]["objects"] == 0);
  CHECK(json["failures"] == 0);
  const Ended text = program.run({"stats"});
  CHECK(text.status == 0);
  CHECK(text.out.find("gfx90a") != std::string::npos);
}

TEST_CASE("the Prometheus text parses line by line", "[tools][stats]") {
  const TempDir dir;
  const Program program(dir.path());
  fill(program);
  const Ended ended = program.run({"stats", "--prometheus"});
  CHECK(ended.status == 0);
  CHECK(first_wrong_line(ended.out).empty());
  CHECK(ended.out.find("broach_cache_entries{target=\"sm_90a\",family=\"window_rows\"} 2\n") !=
        std::string::npos);
  CHECK(ended.out.find("broach_cache_compile_seconds{target=\"sm_90a\",family=\"window_rows\"} "
                       "0.24\n") != std::string::npos);
  CHECK(ended.out.find("broach_journal_misses 3\n") != std::string::npos);
  CHECK(ended.out.find("# TYPE broach_duration_seconds histogram\n") != std::string::npos);
  CHECK(program.run({"stats", "--prometheus", "--json"}).status == 2);
}

TEST_CASE("promtool finds no fault in form or names", "[tools][stats]") {
  if (std::system("command -v promtool > /dev/null") != 0) BROACH_SKIP("promtool is not installed");
  const TempDir dir;
  const Program program(dir.path());
  fill(program);
  const auto status_of = [&](const std::string& text) {
    const std::string file = (dir.path() / "metrics.txt").string();
    std::ofstream(file) << text;
    return std::system(("promtool check metrics < " + file + " 2> " + file + ".said").c_str());
  };
  const std::string text = program.run({"stats", "--prometheus"}).out;
  CHECK(status_of(text) == 0);
  broach::cache::CacheOptions options;
  options.directories = {program.cache()};
  const auto cache = broach::cache::Cache::open(options);
  REQUIRE(cache->find(made_object("one").key));
  CHECK(status_of(broach::runtime::read_metrics(*cache).prometheus()) == 0);
  CHECK(status_of(text + "broach_made{a=\"b\"} seven\n") != 0);
}

TEST_CASE("label values with quotes, backslashes and line breaks stay one value",
          "[tools][stats]") {
  broach::runtime::Exposition exposition;
  exposition.metric("broach_made", broach::runtime::Exposition::Kind::kCounter, "Made up.");
  exposition.sample({{"name", "a\"b\\c\nd"}}, 7);
  CHECK(exposition.text() ==
        "# HELP broach_made Made up.\n# TYPE broach_made counter\n"
        "broach_made{name=\"a\\\"b\\\\c\\nd\"} 7\n");
  CHECK(first_wrong_line(exposition.text()).empty());
}

TEST_CASE("what a cache timed is printed in every form", "[tools][stats]") {
  const TempDir dir;
  broach::cache::CacheOptions options;
  options.directories = {dir.path()};
  const auto cache = broach::cache::Cache::open(options);
  cache->publish(made_object("one"));
  REQUIRE(cache->find(made_object("one").key));
  const broach::Metrics read = broach::runtime::read_metrics(*cache);
  broach::runtime::Exposition text;
  broach::runtime::write(read, text);
  CHECK(first_wrong_line(text.text()).empty());
  for (const char* part : {"_count{operation=\"publish\",cause=\"stored\"} 1\n",
                           "_count{operation=\"look_up\",cause=\"memory\"} 1\n",
                           "cause=\"stored\",le=\"+Inf\"} 1\n", "{event=\"published\"} 1\n"}) {
    CHECK(text.text().find(part) != std::string::npos);
  }
  const std::string lines = broach::tool::lines_of(read);
  for (const char* part :
       {"this process: published 1\n", "this process: hit_memory 1\n",
        "this process: look_up (memory) 1 time, ", "this process: publish (stored) 1 time, "}) {
    CHECK(lines.find(part) != std::string::npos);
  }
  CHECK(lines.find("compile") == std::string::npos);  // What never happened.

  const Json document = Json::parse(broach::tool::to_json(read).dump());
  CHECK(document["events"]["published"] == 1);
  CHECK(document["events"]["hit_memory"] == 1);
  REQUIRE(document["durations"].size() == 2);
  for (const Json& each : document["durations"]) {
    CHECK(each["count"] == 1);
    CHECK(each["sum_seconds"] > 0.0);
    REQUIRE(each["buckets"].size() == 1);
    CHECK(each["buckets"][0]["count"] == 1);
    CHECK(each["buckets"][0]["up_to_seconds"] >= each["sum_seconds"]);
  }
  // The command's own process looks nothing up: its document has the fields, and they are empty.
  const Program program(dir.path());
  const Json json = Json::parse(program.run({"stats", "--json"}).out);
  CHECK(json["durations"].is_array());
  CHECK(json["events"].is_object());
}

TEST_CASE("the check of the Prometheus text finds lines that are none", "[tools][stats]") {
  CHECK(first_wrong_line("broach_made 7\n") == "broach_made 7");
  const std::string head = "# HELP broach_made Made up.\n# TYPE broach_made gauge\n";
  CHECK(first_wrong_line(head + "broach_made 7\n").empty());
  CHECK_FALSE(first_wrong_line(head + "broach_made{a=\"b\"c\"} 7\n").empty());
  CHECK_FALSE(first_wrong_line(head + "broach_made seven\n").empty());
  CHECK_FALSE(first_wrong_line(head + "# TYPE broach_made gauge\n").empty());
}
