#include "cache/holder_note.hpp"

#include <string>

#include "tests/support/catch.hpp"

namespace broach::cache {

TEST_CASE("a holder's note is read back as it was written, and what is no note is none",
          "[cache][turn][note]") {
  const HolderNote note{4711, 4026531836, 1'700'000'000'000, "compile sm_90a"};
  CHECK(parse_holder_note(to_text(note)) == note);
  // A note that is being written may lack its end.
  CHECK(parse_holder_note("1 2 3 st") == HolderNote{1, 2, 3, "st"});
  CHECK(parse_holder_note("1 2 3 stage\nmore") == HolderNote{1, 2, 3, "stage"});
  const std::string text =
      GENERATE("", "1", "1 2 3", "one 2 3 stage", "-1 2 3 stage", "1 -2 3 stage",
               "1 2 -9223372036854775808 stage", "99999999999999999999 2 3 stage", "1  2 3 stage");
  CHECK_FALSE(parse_holder_note(text));
}

}  // namespace broach::cache
