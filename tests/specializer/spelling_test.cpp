#include "specializer/spelling.hpp"

#include <array>

#include "tests/support/catch.hpp"

using namespace broach::specializer;

namespace {

constexpr std::array<std::string_view, 6> kNames = {"sm_80",    "sm_90a", "gfx942",
                                                    "coverage", "warm",   "quarantine"};

}  // namespace

TEST_CASE("the distance between words counts letters and swapped neighbours", "[specializer]") {
  CHECK(spelling_distance("", "abc") == 3);
  CHECK(spelling_distance("warm", "warm") == 0);
  CHECK(spelling_distance("WARM", "warm") == 0);
  CHECK(spelling_distance("wram", "warm") == 1);
  CHECK(spelling_distance("sm_90", "sm_90a") == 1);
  CHECK(spelling_distance("kitten", "sitting") == 3);
}

TEST_CASE("a misspelt name finds its nearest, and a strange word finds none", "[specializer]") {
  CHECK(did_you_mean("wram", kNames) == "; did you mean warm?");
  CHECK(did_you_mean("sm_90", kNames) == "; did you mean sm_90a or sm_80?");
  CHECK(did_you_mean("quaran", kNames) == "; did you mean quarantine?");
  CHECK(did_you_mean("nosuch", kNames).empty());
  CHECK(did_you_mean("", kNames).empty());
  CHECK(did_you_mean(std::string(1 << 20, 'a'), kNames).empty());
}
