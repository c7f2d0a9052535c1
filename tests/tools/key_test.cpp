#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/support/catch.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/tools/made_objects.hpp"
#include "tests/tools/program.hpp"

using namespace broach::test;
using Json = nlohmann::json;

TEST_CASE("a key pair is made once, and its secret half is its owner's alone", "[tools][key]") {
  const TempDir dir;
  const Program program(dir.path());
  const auto key = dir.path() / "release";
  const Ended made = program.run({"key", "generate", key.string(), "--name", "ci", "--json"});
  CAPTURE(made.err);
  REQUIRE(made.status == 0);
  struct stat status {};
  REQUIRE(stat(key.c_str(), &status) == 0);
  CHECK((status.st_mode & 07777U) == 0600);
  CHECK(program.run({"key", "generate", key.string()}).status == 2);
  CHECK(program.run({"key", "generate", (dir.path() / "x").string(), "--name", "a\nb"}).status ==
        2);
  // The id is the public key's, whoever reads it.
  const Json trusted =
      Json::parse(program.run({"key", "trust", key.string() + ".pub", "--json"}).out);
  CHECK(trusted["id"] == Json::parse(made.out)["id"]);
  CHECK(std::filesystem::exists(dir.path() / ".config/broach/trusted_keys" /
                                (trusted["id"].get<std::string>() + ".pub")));
}

TEST_CASE("a key that cannot be read, or is not one, ends with one line", "[tools][key]") {
  const TempDir dir;
  const Program program(dir.path());
  std::ofstream(dir.path() / "rubbish") << "rubbish\n";
  const auto rubbish = (dir.path() / "rubbish").string();
  CHECK(program.run({"key", "trust", rubbish}).status == 1);
  CHECK(program.run({"key", "trust", rubbish + "x"}).status == 3);
  CHECK(program.run({"key", "sign", rubbish}).status != 0);
  CHECK(program.run({"key", "distrust", std::string(32, '0')}).status == 3);
  CHECK(program.run({"key"}).status == 2);
  const Ended none = program.run({"key", "ls"});
  CHECK(none.status == 0);
  CHECK(none.err.find("no key is trusted") != std::string::npos);
}

TEST_CASE("a key that others could have planted is not trusted, and ls says so", "[tools][key]") {
  const TempDir dir;
  const Program program(dir.path());
  const auto key = dir.path() / "release";
  REQUIRE(program.run({"key", "generate", key.string()}).status == 0);
  REQUIRE(program.run({"key", "trust", key.string() + ".pub"}).status == 0);
  REQUIRE(program.run({"key", "ls"}).status == 0);
  const auto trusted = dir.path() / ".config/broach/trusted_keys";
  std::filesystem::permissions(trusted, std::filesystem::perms(0777));
  const Ended listed = program.run({"key", "ls", "--json"});
  CHECK(listed.status == 1);
  CHECK(Json::parse(listed.out)["keys"].empty());
  CHECK(Json::parse(listed.out)["problems"][0].get<std::string>().find("plant code") !=
        std::string::npos);
}

TEST_CASE("a signed directory can be shared with those who trust the key", "[tools][key]") {
  const TempDir dir;
  Program maker(dir.path() / "maker");
  Program taker(dir.path() / "taker");
  for (const Program* program : {&maker, &taker}) {
    std::filesystem::create_directories(program->home());
  }
  publish_in(maker.cache(), made_object("one"));
  const auto key = dir.path() / "key";
  REQUIRE(maker.run({"key", "generate", key.string()}).status == 0);
  REQUIRE(maker.run({"key", "sign", key.string()}).status == 0);
  std::filesystem::permissions(maker.cache(), std::filesystem::perms(0777));
  taker.set("BROACH_CACHE_PATH", maker.cache().string());
  const std::vector<std::string> list = {"ls", "--layer", "read_only", "--json"};
  CHECK(Json::parse(taker.run(list).out).empty());
  REQUIRE(taker.run({"key", "trust", key.string() + ".pub"}).status == 0);
  CHECK(Json::parse(taker.run(list).out).size() == 1);
}
