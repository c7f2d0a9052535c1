#include "cache/remote/lease_note.hpp"

#include <string>

#include "tests/support/catch.hpp"

namespace broach::cache::remote {

TEST_CASE("a note is read back as it was written, and what is no note is none",
          "[cache][remote][lease]") {
  const LeaseNote note = LeaseNote::own("limits and more");
  const auto read = parse_lease_note(to_text(note));
  REQUIRE(read);
  CHECK(read->token == note.token);
  CHECK(read->pid == note.pid);
  CHECK(read->stage == "limits_and_more");
  CHECK(LeaseNote::own("x").token != note.token);
  for (const std::string& text :
       {std::string(), std::string("token"), std::string("token host pid 1 stage"),
        std::string("token host 1 2"), std::string("token \x1b[2Jhost 1 2 stage"),
        std::string("token host -1 2 stage"),
        std::string("token host 1 -9223372036854775808 stage"), std::string("token host 1 2stage"),
        std::string("token host 1+2 stage"), "token host 1 2 " + std::string(600, 's')}) {
    CHECK_FALSE(parse_lease_note(text));
  }
}

}  // namespace broach::cache::remote
