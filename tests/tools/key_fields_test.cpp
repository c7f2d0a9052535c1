#include "tools/broach/key_fields.hpp"

#include "tests/support/catch.hpp"

using namespace broach;
using namespace broach::tool;

namespace {

std::vector<cache::KeyField> key_of(const std::string& body, const std::string& compiler) {
  return with_named_sources({{"key_schema", "1"},
                             {"option", "-O2"},
                             {"option", "-fPIC"},
                             {"source.name", "main.cu"},
                             {"source.bytes", body},
                             {"compiler", compiler}});
}

}  // namespace

TEST_CASE("a source's name and bytes become one field that is shown by size and digest",
          "[tools][key_fields]") {
  const auto fields = key_of("int x;\n", "nvrtc 13.0");
  REQUIRE(fields.size() == 5);
  CHECK(fields[3].label == "source main.cu");
  CHECK(is_source(fields[3]));
  CHECK_FALSE(is_source(fields[4]));
  CHECK(field_summary(fields[3]).starts_with("7 bytes, digest "));
  CHECK(field_summary(fields[3]) != field_summary(key_of("int y;\n", "")[3]));
  CHECK(field_summary(fields[4]) == "nvrtc 13.0");
}

TEST_CASE("keys that differ say in which fields, a changed source by its file",
          "[tools][key_fields]") {
  const auto wanted = key_of("int x;\n", "nvrtc 13.0");
  CHECK(differences(wanted, wanted).empty());
  auto found = key_of("int y;\n", "nvrtc 12.9");
  found.erase(found.begin() + 2);  // The second option.
  found.push_back({"shape.variant.generic", "on"});
  const auto different = differences(wanted, found);
  REQUIRE(different.size() == 4);
  CHECK(different[0].label == "option");
  CHECK(different[0].wanted == "-fPIC");
  CHECK(different[0].found.empty());
  CHECK(different[1].label == "source main.cu");
  CHECK(different[2].label == "compiler");
  CHECK(different[2].found == "nvrtc 12.9");
  CHECK(different[3].label == "shape.variant.generic");
  CHECK(different[3].wanted.empty());
}
