#include <sys/socket.h>

#include <random>

#include "specializer/compile/channel.hpp"
#include "specializer/compile/protocol.hpp"
#include "tests/support/catch.hpp"

namespace {

using namespace broach;
using namespace broach::specializer::rtc;

std::vector<Message> samples() {
  return {
      OpenRequest{Engine::kHiprtc, "/lib/x.so", 1ULL << 40, "/tmp/a"},
      CompileRequest{"sm_90a", {{"main.cu", "a\0b"}, {"x/y.cuh", ""}}, {"-O3", ""}, {"f<4>", "g"}},
      Opened{"key", "words", {{"/a", "12"}, {"/b", ""}}, {"sm_80", "sm_90"}, {13, 1}},
      Compiled{std::string(100000, '\0'), "log\n", 1234, {"_Z1fILi4EEvv", "g"}},
      Failed{ErrorCode::kCompileFailed, "no", "a long log"}};
}

std::string body_of(const Message& message) { return encode(message)->substr(kHeaderBytes); }

}  // namespace

TEST_CASE("every message comes back as it was sent", "[specializer][protocol]") {
  for (const Message& message : samples()) {
    const auto frame = encode(message);
    REQUIRE(frame);
    const auto length = body_bytes(std::string_view(*frame).substr(0, kHeaderBytes));
    REQUIRE(length);
    CHECK(*length == frame->size() - kHeaderBytes);
    const auto back = decode(std::string_view(*frame).substr(kHeaderBytes));
    REQUIRE(back);
    CHECK(*back == message);
  }
}

TEST_CASE("a body cut anywhere is refused", "[specializer][protocol]") {
  for (const Message& message : samples()) {
    const std::string body = body_of(message);
    for (std::size_t length = 0; length < std::min<std::size_t>(body.size(), 300); ++length) {
      const auto cut = decode(std::string_view(body).substr(0, length));
      // A list may end early and still be whole; it is another message then.
      if (cut) {
        CHECK_FALSE(*cut == message);
      } else {
        CHECK(cut.error().code == ErrorCode::kDamaged);
      }
    }
  }
}

TEST_CASE("changed bytes are refused or decode to another message, and never do harm",
          "[specializer][protocol]") {
  std::minstd_rand random(20261130);
  std::size_t refused = 0;
  for (const Message& message : samples()) {
    const std::string body = body_of(message);
    for (int i = 0; i < 2000; ++i) {
      std::string changed = body;
      const std::size_t at = random() % std::min<std::size_t>(body.size(), 200);
      const char before = changed[at];
      changed[at] = static_cast<char>(random());
      const auto decoded = decode(changed);
      if (!decoded) ++refused;
      if (decoded && changed[at] != before) CHECK_FALSE(*decoded == message);
    }
  }
  CHECK(refused > 1000);
}

TEST_CASE("bounds hold in both directions", "[specializer][protocol]") {
  CHECK_FALSE(body_bytes("brt2\xff\xff\xff\xff"));
  CHECK_FALSE(body_bytes(std::string_view("brt2\0\0\0\0", 8)));
  CHECK_FALSE(body_bytes(std::string_view("http\1\0\0\0", 8)));
  CHECK_FALSE(body_bytes("brt2"));
  CompileRequest request{"sm_90a", {{std::string(kMaxNameBytes + 1, 'n'), ""}}, {}};
  CHECK(encode(request).error().code == ErrorCode::kLimitExceeded);
  request.sources = {{"main.cu", ""}};
  request.options.assign(kMaxFields + 1, "-x");
  CHECK(encode(request).error().code == ErrorCode::kLimitExceeded);
  // A field that claims more than there is.
  CHECK_FALSE(decode(std::string_view("\2\11\xff\xff\xff\x0f", 6)));
  // A field over its own bound, with the bytes there.
  std::string body("\2\11\1\20\0\0", 6);
  body += std::string(kMaxNameBytes + 1, 'a');
  CHECK_FALSE(decode(body));
}

TEST_CASE("missing, doubled and foreign fields are refused by name", "[specializer][protocol]") {
  const std::string whole = body_of(OpenRequest{Engine::kHost, "/p", 1, "/s"});
  REQUIRE(decode(whole));
  CHECK_FALSE(decode(whole.substr(0, 1)));
  const std::string engine = whole.substr(1, 6);
  CHECK(decode(whole + engine).error().message.find("twice") != std::string::npos);
  const std::string log("\16\2\0\0\0ab", 7);
  CHECK_FALSE(decode(whole + log));
  std::string other_verb = whole;
  other_verb[0] = 99;
  CHECK_FALSE(decode(other_verb));
  std::string other_engine = whole;
  other_engine[6] = 3;
  CHECK_FALSE(decode(other_engine));
}

TEST_CASE("a channel carries frames larger than a socket's buffer and respects its deadline",
          "[specializer][protocol]") {
  int ends[2];
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
  Channel left{UniqueFd(ends[0])};
  const Deadline soon = std::chrono::steady_clock::now() + std::chrono::milliseconds(20);
  {
    Channel right{UniqueFd(ends[1])};
    CHECK(right.receive(soon).error().code == ErrorCode::kTimedOut);
    // Nobody reads: the send cannot finish.
    const Compiled big{std::string(std::size_t{8} << 20, 'x'), "", 0, {}};
    CHECK(left.send(big, soon).error().code == ErrorCode::kTimedOut);
  }
  CHECK(left.receive({}).error().code == ErrorCode::kCompilerDied);
  CHECK(left.send(Failed{ErrorCode::kIo, "", ""}, {}).error().code == ErrorCode::kCompilerDied);
}
