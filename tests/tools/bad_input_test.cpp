#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/support/catch.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/tools/program.hpp"

using namespace broach::test;

namespace {

/// One line on standard error that holds every one of `words`.
void check_one_line(const Ended& ended, int status, const std::vector<std::string>& words) {
  CAPTURE(ended.err, ended.out);
  CHECK(ended.status == status);
  CHECK(std::count(ended.err.begin(), ended.err.end(), '\n') == 1);
  CHECK(ended.err.starts_with("broach: "));
  for (const std::string& word : words) {
    CAPTURE(word);
    CHECK(ended.err.find(word) != std::string::npos);
  }
}

void write_file(const std::filesystem::path& path, const std::string& text) {
  std::ofstream(path) << text;
}

}  // namespace

TEST_CASE("a shape or target that cannot be served names the value and what would work",
          "[tools][bad_input]") {
  const TempDir dir;
  const Program program(dir.path());
  const auto explain = [&](const std::string& shape, const std::string& target = "host") {
    return program.run({"explain", shape, "--target", target});
  };
  check_one_line(explain("window_rows head_dim=256 gqa_ratio=2", "sm_42"), 2,
                 {"sm_42", "help targets"});
  check_one_line(explain("window_rows head_dim=256 gqa_ratio=2", "sm_09a"), 2, {"sm_90a"});
  check_one_line(explain("window_rows head_dim=256 gqa_ratio=0"), 2, {"gqa_ratio", "0", "32"});
  check_one_line(explain("window_rows head_dim=256 gqa_ratio=33"), 2, {"gqa_ratio", "33", "32"});
  check_one_line(explain("window_rows head_dim=100 gqa_ratio=2"), 2, {"head_dim", "100", "128"});
  check_one_line(explain("window_rows head_dim=256 gqa_ratio=2 window=2048 kv_layout=ring(1536)"),
                 2, {"window", "2048", "1536"});
  check_one_line(explain("window_rows head_dim=256 gqa_ratio=2 colour=blue"), 2, {"colour"});
  check_one_line(explain("rows head_dim=256"), 2, {"rows", "window_rows"});
  check_one_line(explain(" "), 2, {"shape"});
}

TEST_CASE("a manifest that cannot be used names the file and the fault", "[tools][bad_input]") {
  const TempDir dir;
  const Program program(dir.path());
  const auto file = (dir.path() / "models.json").string();
  SECTION("not JSON") {
    write_file(file, "layers: yes");
    const Ended refused = program.run({"warm", file, "--target", "host"});
    check_one_line(refused, 2, {file, "JSON"});
    CHECK(refused.err.find("json.exception") == std::string::npos);
  }
  SECTION("not a manifest") {
    write_file(file, "[1, 2]");
    check_one_line(program.run({"warm", file, "--target", "host"}), 2, {file});
  }
  SECTION("no such manifest, shipped or not") {
    check_one_line(program.run({"warm", "gemma-9", "--target", "host"}), 2, {"gemma-9", "gemma-4"});
  }
  SECTION("a model that is not in it") {
    check_one_line(program.run({"warm", "gemma-4", "--model", "Gemma 5", "--target", "host"}), 2,
                   {"Gemma 5", "Gemma 4 12B"});
  }
  SECTION("an unknown target") {
    check_one_line(program.run({"warm", "gemma-4", "--target", "sm_42"}), 2,
                   {"sm_42", "help targets"});
    const Ended listed = program.run({"help", "targets"});
    CHECK(listed.status == 0);
    CHECK(listed.out.find("sm_121a\n") != std::string::npos);
  }
  SECTION("no target") { check_one_line(program.run({"warm", "gemma-4"}), 2, {"--target"}); }
  SECTION("a shard that is none") {
    for (const char* shard : {"0/4", "5/4", "1", "a/b", "1/0"}) {
      check_one_line(program.run({"warm", "gemma-4", "--target", "host", "--shard", shard}), 2,
                     {shard, "--shard"});
    }
  }
}

TEST_CASE("a cache directory that is not safe or cannot be made is refused with the reason",
          "[tools][bad_input]") {
  const TempDir dir;
  const Program program(dir.path());
  SECTION("writable by the group") {
    const auto shared = dir.path() / "shared";
    std::filesystem::create_directory(shared);
    chmod(shared.c_str(), 0770);
    check_one_line(program.run({"warm", "gemma-4", "--target", "host", "--cache-dir", shared}), 4,
                   {shared, "group", "--cache-dir"});
  }
  SECTION("someone else's") {
    if (geteuid() != 0) BROACH_SKIP("only root can give a directory away");
    const auto theirs = dir.path() / "theirs";
    std::filesystem::create_directory(theirs);
    chmod(theirs.c_str(), 0755);
    REQUIRE(chown(theirs.c_str(), 65534, 65534) == 0);
    check_one_line(program.run({"ls", "--cache-dir", theirs}), 4, {theirs, "65534"});
  }
  SECTION("below a file") {
    write_file(dir.path() / "file", "");
    const auto below = (dir.path() / "file" / "cache").string();
    check_one_line(program.run({"warm", "gemma-4", "--target", "host", "--cache-dir", below}), 4,
                   {below});
  }
}

TEST_CASE("a key that names nothing or is no key says so", "[tools][bad_input]") {
  const TempDir dir;
  const Program program(dir.path());
  check_one_line(program.run({"show", "XYZ"}), 2, {"XYZ", "hexadecimal"});
  check_one_line(program.run({"show", "0123"}), 3, {"0123", "broach ls"});
  check_one_line(program.run({"gc", "--key", "0123"}), 3, {"0123"});
}

TEST_CASE("a command that there is not is named, with the nearest", "[tools][bad_input]") {
  const TempDir dir;
  const Program program(dir.path());
  check_one_line(program.run({"nosuch"}), 2, {"\"nosuch\"", "broach --help"});
  check_one_line(program.run({"verfiy"}), 2, {"\"verfiy\"", "did you mean verify?"});
  check_one_line(program.run({}), 2, {"broach --help"});
}

TEST_CASE("with --json every refusal is an error object on standard output", "[tools][bad_input]") {
  const TempDir dir;
  Program program(dir.path());
  const auto refused = [&](const std::vector<std::string>& words) {
    const Ended ended = program.run(words);
    CAPTURE(words, ended.err);
    CHECK(ended.status == 2);
    const auto json = nlohmann::json::parse(ended.out, nullptr, false);
    REQUIRE(json.is_object());
    CHECK(json["error"]["code"] == "invalid_argument");
    CHECK_FALSE(json["error"]["message"].get<std::string>().empty());
  };
  refused({"explain", "--json"});
  refused({"gc", "--max-bytes", "xyz", "--json"});
  refused({"nosuch", "--json"});
  refused({"ls", "--json", "--nosuch"});
  refused({"run", "--json", "--rows"});
  refused({"--json"});
  program.set("BROACH_JOBS", "many");
  refused({"ls", "--json"});
}

TEST_CASE("a message that cannot be written changes nothing", "[tools][bad_input]") {
  const TempDir dir;
  Program program(dir.path());
  give_warmed_cache(program);
  SECTION("on a full disk") { program.write_messages_to("/dev/full"); }
  SECTION("to a stream that was closed") { program.write_messages_to(""); }
  const Ended warmed = program.run(warm_arguments({"--json"}));
  CHECK(warmed.status == 0);
  CHECK(nlohmann::json::parse(warmed.out)["hits"] == 1);
  CHECK(program.run(warm_arguments()).status == 0);
  CHECK(program.run({"ls", "--family", "nosuch"}).status != 5);
  // What would have been written to descriptor 2 is in no file of the cache.
  CHECK(program.run({"verify"}).status == 0);
}

TEST_CASE("a run's numbers have ranges, and the option that is out of its own is named",
          "[tools][bad_input]") {
  const TempDir dir;
  const Program program(dir.path());
  const auto run = [&](const std::string& option, const std::string& value,
                       const std::vector<std::string>& shape = {"head_dim=64", "gqa_ratio=2"}) {
    std::vector<std::string> words = {"run", "window_rows"};
    words.insert(words.end(), shape.begin(), shape.end());
    words.insert(words.end(), {"--target", "host", option, value});
    return program.run(words);
  };
  check_one_line(run("--kv-heads", "-1"), 2, {"--kv-heads", "-1"});
  check_one_line(run("--kv-heads", "0"), 2, {"--kv-heads"});
  check_one_line(run("--position", "-5"), 2, {"--position", "-5"});
  check_one_line(run("--position", "2147483647"), 2, {"--position", "2147483647"});
  check_one_line(run("--position", "1000000000"), 2, {"--position", "1000000000"});
  check_one_line(run("--p0", "2147483647", {"head_dim=64", "gqa_ratio=2", "form=prefill"}), 2,
                 {"--p0", "2147483647"});
  check_one_line(run("--p0", "1000000000", {"head_dim=64", "gqa_ratio=2", "form=prefill"}), 2,
                 {"--p0", "1000000000"});
  check_one_line(run("--launches", "0"), 2, {"--launches"});
}

TEST_CASE("a device that is not there is named", "[tools][bad_input]") {
  const TempDir dir;
  const Program program(dir.path());
  const Ended unknown = program.run({"run", "window_rows", "--device", "abacus"});
  CHECK(unknown.status == 2);
  CHECK(unknown.err.find("abacus") != std::string::npos);
  for (const char* device : {"cuda:77", "hip:77"}) {
    const Ended absent = program.run({"run", "window_rows", "--device", device});
    CAPTURE(absent.err);
    CHECK(absent.status == 3);
  }
}
