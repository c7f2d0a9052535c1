#include "tools/broach/filters.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <vector>

#include "cache/cache.hpp"
#include "specializer/target.hpp"
#include "tests/support/as_user.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/tools/made_objects.hpp"
#include "tests/tools/program.hpp"

using namespace broach;
using namespace broach::test;
using namespace broach::tool;

TEST_CASE("texts are ordered as people read them", "[tools][filters]") {
  std::vector<std::string> words{"sm_120a", "head_dim=128", "sm_90a", "gfx1100",
                                 "gfx90a",  "head_dim=64",  "sm_90",  "head_dim=064x"};
  std::sort(words.begin(), words.end(), reads_before);
  CHECK(words == std::vector<std::string>{"gfx90a", "gfx1100", "head_dim=64", "head_dim=064x",
                                          "head_dim=128", "sm_90", "sm_90a", "sm_120a"});
  CHECK_FALSE(reads_before("a1", "a1"));
  CHECK_FALSE(reads_before("", ""));
  CHECK(reads_before("", "a"));
}

TEST_CASE("ls, limits and export refuse a misspelt name and take `host` as warm does",
          "[tools][filters]") {
  const TempDir dir;
  const Program program(dir.path());
  cache::Object object = made_object("one");
  object.description.target = specializer::parse_target("host")->name;
  publish_in(program.cache(), object);
  const auto file = (dir.path() / "out.broach").string();
  for (std::vector<std::string> words :
       {std::vector<std::string>{"ls"}, {"limits"}, {"export", "-o", file}}) {
    CAPTURE(words.front());
    const auto with = [&](std::vector<std::string> more) {
      more.insert(more.begin(), words.begin(), words.end());
      return program.run(more);
    };
    const Ended misspelt = with({"--target", "sm_99"});
    CHECK(misspelt.status == 2);
    CHECK(misspelt.err.find("sm_99") != std::string::npos);
    CHECK(misspelt.err.find("did you mean sm_") != std::string::npos);
    const Ended host = with({"--target", "host"});
    CHECK(host.status == 0);
    CHECK(host.out.find("no entries") == std::string::npos);
    if (words.front() == "limits") continue;
    const Ended family = with({"--family", "window_row"});
    CHECK(family.status == 2);
    CHECK(family.err.find("did you mean window_rows?") != std::string::npos);
  }
  const Ended listed = program.run({"ls", "--target", "host"});
  CHECK(listed.out.find("1 entry") != std::string::npos);
}

TEST_CASE("ls and verify end with 1 when a folder of objects cannot be read", "[tools][filters]") {
  if (geteuid() != 0) BROACH_SKIP("giving a folder away needs root");
  const TempDir dir;
  const Program program(dir.path());
  const cache::Object object = made_object("one");
  publish_in(program.cache(), object);
  const std::string hex = object.key.key.hex();
  const auto shelf = program.cache() / "objects" / hex.substr(0, 2);
  CHECK(program.run({"verify"}).status == 0);
  REQUIRE(lchown(shelf.c_str(), 12345, 12345) == 0);
  const Ended listed = program.run({"ls"});
  CHECK(listed.status == 1);
  CHECK(listed.err.find(shelf.string()) != std::string::npos);
  const Ended verified = program.run({"verify"});
  CHECK(verified.status == 1);
  CHECK(verified.out.find(shelf.string()) != std::string::npos);
  CHECK(verified.out.find("1 could not be looked at") != std::string::npos);
}

TEST_CASE("verify ends with 1 when a layer that is named cannot be used", "[tools][filters]") {
  const TempDir dir;
  Program program(dir.path());
  publish_in(program.cache(), made_object("one"));
  program.set("BROACH_CACHE_PATH", (dir.path() / "nothing.broach").string());
  const Ended verified = program.run({"verify"});
  CHECK(verified.status == 1);
  CHECK(verified.out.find("nothing.broach") != std::string::npos);
}

TEST_CASE("an image that was warmed in a named directory serves another user", "[tools][filters]") {
  if (geteuid() != 0) BROACH_SKIP("being another user needs root");
  const TempDir dir;
  std::filesystem::permissions(dir.path(), std::filesystem::perms(0755));
  Program program(dir.path());
  give_warmed_cache(program);
  program.set("BROACH_CACHE_PATH", program.cache().string());  // Nothing is compiled again.
  // As the image's recipe has it: a directory that is named, and a file system that is then only
  // read. A relative one begins where the command runs.
  const std::string image = (dir.path() / "kernels").string();
  const Ended warmed = program.run(warm_arguments({"--cache-dir", image}));
  CAPTURE(warmed.err);
  REQUIRE(warmed.status == 0);
  Program user(dir.path() / "nobodys");
  user.set("BROACH_CACHE_PATH", image);
  CHECK(as_user(23456, [&] {
    const Ended listed = user.run({"ls", "--json", "--layer", image});
    return listed.status == 0 && listed.out.find("window_rows") != std::string::npos;
  }));
  const std::string closed = (dir.path() / "closed").string();
  std::filesystem::create_directory(closed);
  std::filesystem::permissions(closed, std::filesystem::perms::owner_all);
  const Ended said = program.run(warm_arguments({"--cache-dir", closed}));
  CHECK(said.err.find("no other user can read the cache directory") != std::string::npos);
}

TEST_CASE("a relative cache directory begins where the command runs", "[tools][filters]") {
  const TempDir dir;
  publish_in(dir.path() / "kernels", made_object("one"));
  Program program(dir.path());
  program.prepare([&] { return chdir(dir.path().c_str()) == 0; });
  const Ended listed = program.run({"ls", "--cache-dir", "kernels"});
  CHECK(listed.status == 0);
  CHECK(listed.out.find("1 entry") != std::string::npos);
}

TEST_CASE("what a bundle brought is shown without a time that it does not have",
          "[tools][filters]") {
  const TempDir dir;
  const Program program(dir.path());
  cache::Object object = made_object("one");
  object.provenance.created_unix_ms = 0;
  object.provenance.compile_ms = 0;
  publish_in(program.cache(), object);
  const Ended shown = program.run({"show", object.key.key.hex()});
  CHECK(shown.status == 0);
  CHECK(shown.out.find("; compiled by ") != std::string::npos);
  CHECK(shown.out.find("0 s on") == std::string::npos);
}

TEST_CASE("what was warmed from the journal is missed no more", "[tools][filters]") {
  const TempDir dir;
  const Program program(dir.path());
  give_warmed_cache(program);
  {
    cache::CacheOptions options;
    options.directories = {program.cache()};
    const auto cache = cache::Cache::open(options);
    const auto entries = cache->entries();
    REQUIRE(entries);
    REQUIRE(entries->size() == 1);
    const cache::Description& there = entries->front().description;
    cache->record_miss({there.family, there.shape_json, there.target, 1, 1});
    cache->record_miss({there.family, there.shape_json, "sm_90a", 1, 1});
  }
  CHECK(program.run({"warm", "--from-journal", "--target", "host"}).status == 0);
  const Ended left = program.run({"journal", "--json"});
  CHECK(left.out.find("sm_90a") != std::string::npos);
  CHECK(left.out.find("host-") == std::string::npos);
}
