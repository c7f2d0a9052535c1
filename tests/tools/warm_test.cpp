#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "cache/file_lock.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/tools/program.hpp"

using namespace broach::test;
using Json = nlohmann::json;

namespace {

Json document(const Ended& ended) {
  CAPTURE(ended.err, ended.out);
  REQUIRE(ended.status == 0);
  const Json json = Json::parse(ended.out, nullptr, false);
  REQUIRE_FALSE(json.is_discarded());
  return json;
}

}  // namespace

TEST_CASE("what was warmed is listed, shown, explained, checked and not compiled again",
          "[tools][warm]") {
  const TempDir dir;
  const Program program(dir.path());
  const Json first = Json::parse(cold_warm_output());
  CHECK(first["requested"] >= 1);
  CHECK(first["compiled"] == first["requested"]);
  CHECK(first["hits"] == 0);
  CHECK(first["failed"] == 0);
  CHECK(first["seconds"] > 0);

  give_warmed_cache(program);
  const Json second = document(program.run(warm_arguments({"--json"})));
  CHECK(second["compiled"] == 0);
  CHECK(second["hits"] == first["requested"]);

  const Json entries = document(program.run({"ls", "--json"}));
  REQUIRE(entries.is_array());
  REQUIRE(entries.size() == first["requested"]);
  const Json& entry = entries[0];
  for (const char* field : {"key", "source_hash", "target", "family", "shape", "bytes",
                            "compile_ms", "compiler", "hits"}) {
    CHECK(entry.contains(field));
  }
  CHECK(entry["family"] == "window_rows");
  CHECK(entry["shape"].is_object());
  CHECK(entry["bytes"] > 0);
  const std::string key = entry["key"];
  CHECK(key.size() == 32);

  const Json limits = document(program.run({"limits", "--json"}));
  REQUIRE(limits.size() >= entries.size());
  std::set<std::string> keys;
  for (const Json& row : limits) {
    for (const char* field : {"key", "target", "function", "registers", "spill_bytes",
                              "static_shared", "max_threads"}) {
      CHECK(row.contains(field));
    }
    keys.insert(row["key"]);
  }
  CHECK(keys.size() == entries.size());

  const Json shown = document(program.run({"show", key.substr(0, 16), "--source", "--json"}));
  CHECK(shown["key"] == key);
  CHECK(shown["limits"].size() >= 1);
  CHECK(std::any_of(shown["key_fields"].begin(), shown["key_fields"].end(), [](const Json& field) {
    return field.contains("text") && field["text"].get<std::string>().size() > 100;
  }));

  const Json checked = document(program.run({"verify", "--json"}));
  CHECK(checked["objects"] == entries.size());
  CHECK(checked["damaged"] == 0);

  // The shape as the entry has it is a hit; one parameter away is a miss that names it.
  std::string words = "window_rows";
  for (const auto& [name, value] : entry["shape"].items()) {
    if (name == "family" || name == "checked") continue;
    words += " " + name + "=" + (value.is_string() ? value.get<std::string>() : value.dump());
  }
  const Json hit = document(program.run({"explain", words, "--target", "host", "--json"}));
  CHECK(hit["hit"] == true);
  CHECK(hit["key"] == key);
  CHECK(hit["layer"]["kind"] == "user");
  const Ended miss = program.run({"explain", words + " checked=on", "--target", "host", "--json"});
  CHECK(miss.status == 1);
  const Json why = Json::parse(miss.out);
  CHECK(why["hit"] == false);
  REQUIRE(why["nearest"].is_object());
  std::set<std::string> differing;
  for (const Json& row : why["nearest"]["differences"]) differing.insert(row["field"]);
  CHECK(differing.count("shape.checked") == 1);
  CHECK(differing.count("target") == 0);

  // While a process makes the missing one, whoever asks is told which, at what, and for how long.
  CHECK(why["being_made_by"].is_null());
  const auto locks = program.cache() / "locks";
  std::filesystem::create_directory(locks);
  std::filesystem::permissions(locks, std::filesystem::perms::owner_all);
  const broach::cache::Fd folder(open(locks.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  auto lock = broach::cache::FileLock::try_take(folder.get(), why["key"].get<std::string>());
  REQUIRE(lock);
  REQUIRE(lock->has_value());
  (*lock)->write("4711 0 1 compile\n");
  const std::vector<std::string> asked = {"explain", words + " checked=on", "--target", "host"};
  const Json maker = Json::parse(
      program.run({asked[0], asked[1], asked[2], asked[3], "--json"}).out)["being_made_by"];
  CHECK(maker["pid"] == 4711);
  CHECK(maker["stage"] == "compile");
  CHECK(maker["seconds"] > 1e9);
  CHECK(program.run(asked).out.find("process 4711 makes it") != std::string::npos);
}

TEST_CASE("shards cover a manifest without overlap", "[tools][warm]") {
  const TempDir dir;
  const Program program(dir.path());
  // No compiler is needed to see which keys a shard holds: each fails, and is named.
  Program without(dir.path());
  without.set("BROACH_CXX", "/nonexistent/c++");
  const auto shapes = [&](const std::string& shard) {
    std::vector<std::string> arguments = {"warm",   "gemma-4",  "--form", "decode",
                                          "--json", "--target", "host"};
    if (!shard.empty()) arguments.insert(arguments.end(), {"--shard", shard});
    const Ended ended = without.run(arguments);
    CAPTURE(ended.err);
    CHECK(ended.status == 1);
    const Json json = Json::parse(ended.out);
    CHECK(json["failed"] == json["requested"]);
    std::multiset<std::string> found;
    for (const Json& failure : json["failures"]) found.insert(failure["shape"].dump());
    return found;
  };
  const auto whole = shapes("");
  REQUIRE(whole.size() >= 3);
  std::multiset<std::string> joined;
  for (const char* shard : {"1/3", "2/3", "3/3"}) {
    for (const std::string& shape : shapes(shard)) joined.insert(shape);
  }
  CHECK(joined == whole);
}

TEST_CASE("generic kernels are warmed beside the shapes that share them", "[tools][warm]") {
  const TempDir dir;
  // No compiler is needed to see what is asked for: each fails, and is named.
  Program without(dir.path());
  without.set("BROACH_CXX", "/nonexistent/c++");
  const Ended ended = without.run({"warm", "gemma-4", "--json", "--target", "host", "--generic"});
  CAPTURE(ended.err);
  REQUIRE(ended.status == 1);
  std::size_t specialised = 0;
  std::set<std::string> generic;
  const Json json = Json::parse(ended.out);
  for (const Json& failure : json["failures"]) {
    const Json& shape = failure["shape"];
    if (!shape.contains("variant.generic")) {
      ++specialised;
      continue;
    }
    CHECK(shape["window"] == "any");
    CHECK(generic.insert(shape.dump()).second);
  }
  CHECK(generic.size() >= 2);  // At least one a form.
  CHECK(generic.size() < specialised);
}

TEST_CASE("a terminal gets a bar that is redrawn, a log gets a line a step", "[tools][warm]") {
  const TempDir dir;
  Program program(dir.path());
  program.set("TERM", "xterm");
  give_warmed_cache(program);
  const Ended drawn = program.run_on_terminal(warm_arguments());
  CAPTURE(drawn.out);
  CHECK(drawn.status == 0);
  CHECK(drawn.out.find("\r\x1b[K[") != std::string::npos);
  CHECK(drawn.out.find(" compiled, ") != std::string::npos);
  const Ended logged = program.run(warm_arguments());
  CHECK(logged.status == 0);
  CHECK(logged.err.find('\x1b') == std::string::npos);
  CHECK(logged.err.find("1/") != std::string::npos);
  CHECK(logged.err.find("hit ") != std::string::npos);
  CHECK(logged.out.find("0 compiled") != std::string::npos);
}

TEST_CASE("a listing whose output cannot be written ends with 4", "[tools][warm]") {
  if (access("/dev/full", W_OK) != 0) BROACH_SKIP("no /dev/full");
  const TempDir dir;
  const Ended ended = Program(dir.path()).write_results_to("/dev/full").run({"ls", "--json"});
  CHECK(ended.status == 4);
  CHECK(ended.err.find("No space left") != std::string::npos);
}

TEST_CASE("what a manifest names and nothing serves is listed, and nothing at all is status 1",
          "[tools][warm]") {
  const TempDir dir;
  const Program program(dir.path());
  const std::string file = dir.path() / "mine.json";
  const std::string sparse = R"json("not_served": [{"model": "M 2", "layers": "sparse, all",
      "source": "a config", "reason": "a row does not see every key of a window"}]})json";
  SECTION("with nothing else in it") {
    std::ofstream(file) << R"json({"manifest": 1, "name": "mine", "entries": [], )json" << sparse;
    for (const char* command : {"warm", "coverage"}) {
      const Ended ended = program.run({command, file, "--target", "host", "--json"});
      CAPTURE(command, ended.err, ended.out);
      CHECK(ended.status == 1);
      const Json json = Json::parse(ended.out, nullptr, false);
      CHECK(json["requested"] == 0);
      CHECK(json["not_served"][0]["model"] == "M 2");
      CHECK(ended.err.find("not served: M 2 sparse, all: a row does not see") != std::string::npos);
      CHECK(ended.err.find("nothing of what was named is served") != std::string::npos);
    }
  }
  SECTION("beside what is served") {
    std::ofstream(file) << R"json({"manifest": 1, "name": "mine", "entries": [{"model": "M 1",
        "layers": "full", "source": "a config", "verified": true, "q_heads": 2,
        "kv_heads": 1, "shape": {"head_dim": 64, "gqa_ratio": 2, "window": 0,
        "kv_layout": "linear", "dtype": "bf16"}}], )json"
                        << sparse;
    const Ended chosen =
        program.run({"coverage", file, "--target", "host", "--model", "M 2", "--json"});
    CHECK(chosen.status == 1);
    CHECK(Json::parse(chosen.out, nullptr, false)["requested"] == 0);
    const Ended other =
        program.run({"coverage", file, "--target", "host,sm_90a", "--model", "M 1", "--json"});
    CAPTURE(other.err, other.out);
    const Json json = Json::parse(other.out, nullptr, false);
    CHECK(json["not_served"].empty());
    // Lists with commas are taken wherever an option repeats.
    CHECK(std::any_of(json["entries"].begin(), json["entries"].end(),
                      [](const Json& row) { return row["target"] == "sm_90a"; }));
  }
}

TEST_CASE("one missing compiler is said once, however many kernels it keeps from being made",
          "[tools][warm]") {
  const TempDir dir;
  Program program(dir.path());
  program.set("BROACH_NVRTC", dir.path() / "libnvrtc.so");
  const Ended ended = program.run({"warm", "gemma-4", "--target", "sm_90a"});
  CHECK(ended.status == 1);
  std::size_t said = 0;
  for (std::size_t at = ended.err.find("BROACH_NVRTC"); at != std::string::npos;
       at = ended.err.find("BROACH_NVRTC", at + 1)) {
    ++said;
  }
  CAPTURE(ended.err);
  CHECK(said == 1);
  CHECK(ended.err.find(" more: ") != std::string::npos);
}
