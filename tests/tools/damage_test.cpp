#include <sys/stat.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/support/catch.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/tools/made_objects.hpp"
#include "tests/tools/program.hpp"

using namespace broach::test;
using Json = nlohmann::json;

namespace {

std::filesystem::path only_object(const std::filesystem::path& cache) {
  std::filesystem::path found;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(cache / "objects")) {
    if (entry.is_regular_file()) found = entry.path();
  }
  return found;
}

void flip_last_byte(const std::filesystem::path& path) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(-1, std::ios::end);
  const auto byte = static_cast<char>(file.get() ^ 1);
  file.seekp(-1, std::ios::end);
  file.put(byte);
}

}  // namespace

TEST_CASE("a damaged object is found, set aside, listed, and compiled again", "[tools][damage]") {
  const TempDir dir;
  const Program program(dir.path());
  give_warmed_cache(program);
  flip_last_byte(only_object(program.cache()));

  const Ended verified = program.run({"verify", "--json"});
  CHECK(verified.status == 1);
  const Json report = Json::parse(verified.out);
  CHECK(report["damaged"] == 1);
  REQUIRE(report["findings"].size() == 1);

  const Json aside = Json::parse(program.run({"quarantine", "--json"}).out);
  REQUIRE(aside.size() == 1);
  CHECK_FALSE(aside[0]["why"].get<std::string>().empty());

  const Ended again = program.run(warm_arguments({"--json"}));
  CHECK(again.status == 0);
  CHECK(Json::parse(again.out)["compiled"] == 1);
  CHECK(program.run({"verify"}).status == 0);
}

TEST_CASE("a damaged object never stops a warm run", "[tools][damage]") {
  const TempDir dir;
  const Program program(dir.path());
  give_warmed_cache(program);
  flip_last_byte(only_object(program.cache()));
  const Ended again = program.run(warm_arguments({"--json"}));
  CAPTURE(again.err);
  CHECK(again.status == 0);
  CHECK(Json::parse(again.out)["compiled"] == 1);
}

TEST_CASE("a cache on a full file system keeps nothing, and warm says so", "[tools][damage]") {
  const TempDir dir;
  Program program(dir.path());
  program.mount_small_tmpfs(64 * 1024);
  const Ended ended = program.run(warm_arguments({"--json"}));
  if (ended.status == Program::kCannotMount) BROACH_SKIP("may not mount a tmpfs");
  CAPTURE(ended.err);
  CHECK(ended.status == 4);
  const Json json = Json::parse(ended.out);
  CHECK(json["failed"] >= 1);
  CHECK(ended.err.find(".cache/broach") != std::string::npos);
}

TEST_CASE("gc says what it would remove, and removes exactly that", "[tools][damage]") {
  const TempDir dir;
  const Program program(dir.path());
  for (const char* name : {"a", "b", "c", "d"}) publish_in(program.cache(), made_object(name));
  const auto keys_of = [](const Json& rows) {
    std::vector<std::string> keys;
    for (const Json& row : rows) keys.push_back(row["key"]);
    return keys;
  };
  const auto entries = [&] { return Json::parse(program.run({"ls", "--json"}).out); };
  const Json before = entries();
  REQUIRE(before.size() == 4);
  const Json would =
      Json::parse(program.run({"gc", "--max-objects", "1", "--dry-run", "--json"}).out);
  CHECK(would["dry_run"] == true);
  CHECK(would["removed"].size() == 3);
  CHECK(would["objects_left"] == 1);
  CHECK(keys_of(entries()) == keys_of(before));
  CHECK(program.run({"gc", "--max-objects", "1", "--dry-run"}).out.find("would remove 3 objects") !=
        std::string::npos);

  const Json did = Json::parse(program.run({"gc", "--max-objects", "1", "--json"}).out);
  CHECK(did["dry_run"] == false);
  CHECK(keys_of(did["removed"]) == keys_of(would["removed"]));
  CHECK(did["bytes_removed"] == would["bytes_removed"]);
  const Json left = entries();
  REQUIRE(left.size() == 1);
  const std::string key = left[0]["key"];
  const Ended removed = program.run({"gc", "--key", key, "--json"});
  CHECK(removed.status == 0);
  CHECK(Json::parse(removed.out)["removed"].size() == 1);
  CHECK(program.run({"show", key}).status == 3);
}
