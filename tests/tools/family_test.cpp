#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/support/catch.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/tools/program.hpp"

using namespace broach::test;
using Json = nlohmann::json;

namespace {

bool says(const Ended& ended, std::string_view part) {
  return ended.err.find(part) != std::string::npos;
}

/// A family as `broach family new` writes it, in a directory of its own.
struct Skeleton {
  explicit Skeleton(const Program& program) : directory(program.home() / "kernels") {
    std::filesystem::create_directory(directory);
    made = program.run({"family", "new", "acme.scale", "--directory", directory.string()});
  }

  std::string file() const { return (directory / "scale.family.json").string(); }

  std::filesystem::path directory;
  Ended made;
};

std::string key_of(const Program& program) {
  const Json entries = Json::parse(program.run({"ls", "--json"}).out);
  REQUIRE(entries.size() == 1);
  return entries[0]["key"];
}

}  // namespace

TEST_CASE("a family that the command begins is checked, warmed, explained and covered",
          "[tools][family]") {
  const TempDir dir;
  const Program program(dir.path());
  const Skeleton family(program);
  CAPTURE(family.made.err);
  REQUIRE(family.made.status == 0);
  CHECK(program.run({"family", "new", "acme.scale", "--directory", family.directory.string()})
            .status == 4);  // No file is replaced.
  CHECK(program.run({"family", "new", "scale"}).status == 2);

  const Ended checked = program.run({"family", "check", family.file(), "--json"});
  CAPTURE(checked.err);
  REQUIRE(checked.status == 0);
  CHECK(Json::parse(checked.out)["functions"] == Json{"acme_scale"});
  CHECK(Json::parse(checked.out)["targets"].size() == 3);

  const std::vector<std::string> one{"--shape", "acme.scale items=8", "--target", "host"};
  const auto with = [&](std::vector<std::string> words) {
    words.insert(words.end(), one.begin(), one.end());
    words.insert(words.end(), {"--family", family.file()});
    return words;
  };
  const Ended unknown = program.run({"warm", "--shape", "acme.scale items=8", "--target", "host"});
  CHECK(unknown.status == 2);
  CHECK(says(unknown, "BROACH_FAMILY_PATH"));
  CHECK(program.run(with({"coverage"})).status == 1);
  REQUIRE(program.run(with({"warm"})).status == 0);
  CHECK(program.run(with({"coverage"})).status == 0);
  const Ended hit = program.run({"explain", "--family", family.file(), "acme.scale", "items=8"});
  CHECK(hit.status == 0);
  const Ended miss = program.run({"explain", "--family", family.file(), "acme.scale", "items=9"});
  CHECK(miss.status == 1);
  CHECK(miss.out.find("shape.items") != std::string::npos);
  const Ended odd = program.run({"explain", "--family", family.file(), "acme.scale", "items=99"});
  CHECK(odd.status == 2);
  CHECK(says(odd, "acme.scale items=99 is not served; numbers from 1 to 64 are"));

  // By its name an entry is found without the file; a file names its family too.
  CHECK(Json::parse(program.run({"ls", "--family", "acme.scale", "--json"}).out).size() == 1);
  CHECK(Json::parse(program.run({"ls", "--family", family.file(), "--json"}).out).size() == 1);
  CHECK(program.run({"ls", "--family", "acme.scales"}).status == 2);

  // A directory of family files does as well as a file.
  Program other(dir.path());
  other.set("BROACH_FAMILY_PATH", family.directory.string());
  CHECK(other.run({"coverage", "--shape", "acme.scale items=8", "--target", "host"}).status == 0);
}

TEST_CASE("a family file that others can write is refused, and a fault is named",
          "[tools][family]") {
  const TempDir dir;
  const Program program(dir.path());
  const Skeleton family(program);
  REQUIRE(family.made.status == 0);
  const Ended missing = program.run({"family", "check", family.file() + "x"});
  CHECK(missing.status == 3);
  ::chmod(family.file().c_str(), 0666);
  const Ended open = program.run({"family", "check", family.file()});
  CHECK(open.status == 4);
  CHECK(says(open, "scale.family.json"));
  ::chmod(family.file().c_str(), 0644);
  std::ofstream(family.directory / "scale.cuh") << "#include \"nosuch.cuh\"\n";
  const Ended include = program.run({"family", "check", family.file()});
  CHECK(include.status == 2);
  CHECK(says(include, "scale.cuh"));
  CHECK(says(include, "nosuch.cuh"));
  std::ofstream(family.file()) << "{\n\"family\": 3}";
  const Ended version = program.run({"family", "check", family.file()});
  CHECK(version.status == 2);
  CHECK(says(version, "line 2: family: version 3 is not known here; 1 is"));
}

TEST_CASE("an entry's binary is written to a file, and its instructions are printed",
          "[tools][family]") {
  const TempDir dir;
  const Program program(dir.path());
  const Skeleton family(program);
  REQUIRE(family.made.status == 0);
  REQUIRE(
      program.run({"warm", "--family", family.file(), "--shape", "acme.scale", "--target", "host"})
          .status == 0);
  const std::string key = key_of(program);
  const std::string file = (dir.path() / "scale.so").string();
  const Ended written = program.run({"extract", key.substr(0, 8), "-o", file, "--json"});
  CAPTURE(written.err);
  REQUIRE(written.status == 0);
  CHECK(Json::parse(written.out)["bytes"] == std::filesystem::file_size(file));
  std::string magic(4, '\0');
  std::ifstream(file).read(magic.data(), 4);
  CHECK(magic == "\177ELF");
  CHECK(program.run({"extract", key, "-o", file}).status == 4);
  CHECK(program.run({"extract", key, "-o", file, "--force"}).status == 0);
  CHECK(program.run({"extract", "0000", "-o", file + "2"}).status == 3);

  const Ended printed = program.run({"disassemble", key});
  if (printed.status == 3) {
    CHECK(says(printed, "objdump"));  // The machine has none, and it says so.
  } else {
    CHECK(printed.status == 0);
    CHECK(printed.out.find("acme_scale") != std::string::npos);
  }
  Program bare(dir.path());
  bare.set("PATH", "/nonexistent");
  const Ended none = bare.run({"disassemble", key});
  CHECK(none.status == 3);
  CHECK(says(none, "no program on PATH prints the instructions"));
}
