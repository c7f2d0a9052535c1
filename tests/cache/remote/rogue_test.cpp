// What a hostile or a broken server can do to a look-up: each behaviour ends in a miss, within the
// look-up's bound.
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cache/remote/envelope.hpp"
#include "cache/remote/lease_board.hpp"
#include "tests/cache/remote/machine.hpp"
#include "tests/cache/remote/remotes.hpp"
#include "tests/cache/remote/rogue_server.hpp"
#include "tests/support/catch.hpp"

namespace broach::cache::remote {
namespace {

using cache::test::sample_object;
using cache::test::sample_signer;
using std::chrono::milliseconds;
using test::Machine;
using test::RogueConnection;
using test::RogueServer;

// A look-up waits so long for the first byte, and ten times that in all.
constexpr milliseconds kFirstByte{40};
constexpr milliseconds kWhole = 10 * kFirstByte;
// A machine that runs other tests beside this one: what is bounded here is not a matter of luck.
constexpr milliseconds kSlack{5'000};
constexpr milliseconds kPause{15};

const std::string kFiller(16 * 1024, 'a');

struct Behaviour {
  const char* name;
  const char* scheme;
  RogueServer::Script script;
};

Object wanted() { return sample_object("wanted", 20'000); }

/// A script that answers a question and stays.
RogueServer::Script answers(std::string text) {
  return [text = std::move(text)](RogueConnection& peer) {
    while (peer.hear()) {
      if (!peer.say(text)) return;
    }
  };
}

RogueServer::Script answers_and_closes(std::string text) {
  return [text = std::move(text)](RogueConnection& peer) {
    if (peer.hear()) (void)peer.say(text);
  };
}

RogueServer::Script answers_and_stalls(std::string text) {
  return [text = std::move(text)](RogueConnection& peer) {
    if (peer.hear() && peer.say(text)) peer.stall();
  };
}

RogueServer::Script floods(std::string first, std::string again) {
  return [first = std::move(first), again = std::move(again)](RogueConnection& peer) {
    if (peer.hear() && peer.say(first)) peer.flood(again);
  };
}

RogueServer::Script drips(std::string at_once, std::string slowly) {
  return [at_once = std::move(at_once), slowly = std::move(slowly)](RogueConnection& peer) {
    if (peer.hear() && peer.say(at_once) && peer.drip(slowly, kPause)) peer.stall();
  };
}

std::string bulk(const std::string& value) {
  return "$" + std::to_string(value.size()) + "\r\n" + value + "\r\n";
}

std::string response(const std::string& value, const std::string& headers = "") {
  return "HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(value.size()) + "\r\n" + headers +
         "\r\n" + value;
}

std::string status(const std::string& line) {
  return "HTTP/1.1 " + line + "\r\nContent-Length: 0\r\n\r\n";
}

/// Values that look right and are not: as a store gives them that somebody else writes to.
std::vector<std::pair<const char*, std::string>> false_values() {
  const std::string good = seal(wanted(), sample_signer(1));
  const std::string other = seal(sample_object("other", 20'000), sample_signer(1));
  std::string turned = good;
  turned[turned.size() / 2] = static_cast<char>(turned[turned.size() / 2] ^ 1);
  return {{"nothing", ""},
          {"garbage", std::string(30'000, '\x5a')},
          {"a value that is cut", good.substr(0, good.size() - 1)},
          {"a signature alone", good.substr(0, kSignatureBytes)},
          {"a value with a bit turned", turned},
          {"a value that goes on", good + "x"},
          {"a value that a stranger signed", seal(wanted(), sample_signer(2))},
          {"another key's value, signed by a friend", other},
          {"one's signature with another's bytes",
           good.substr(0, kSignatureBytes) + other.substr(kSignatureBytes)}};
}

void add_of_any_kind(std::vector<Behaviour>& all, const char* scheme) {
  all.push_back({"says nothing", scheme, [](RogueConnection& peer) { peer.stall(); }});
  all.push_back({"hears and says nothing", scheme, answers_and_stalls("")});
  all.push_back({"closes at once", scheme, [](RogueConnection&) {}});
  all.push_back({"closes when it is asked", scheme, answers_and_closes("")});
  all.push_back({"resets at once", scheme, [](RogueConnection& peer) { peer.reset(); }});
  all.push_back({"resets when it is asked", scheme, [](RogueConnection& peer) {
                   if (peer.hear()) peer.reset();
                 }});
  all.push_back({"closes its half", scheme, [](RogueConnection& peer) {
                   if (!peer.hear()) return;
                   peer.half_close();
                   peer.stall();
                 }});
  all.push_back({"does not wait for the question", scheme,
                 [](RogueConnection& peer) { peer.flood(kFiller); }});
  all.push_back({"floods zeros", scheme, floods("", std::string(16 * 1024, '\0'))});
  all.push_back({"answers with garbage", scheme, answers("\x16\x03\x01\x02\xff\xfe garbage\r\n")});
}

void add_redis(std::vector<Behaviour>& all) {
  add_of_any_kind(all, "redis");
  const auto add = [&](const char* name, RogueServer::Script script) {
    all.push_back({name, "redis", std::move(script)});
  };
  add("a status that does not end", floods("+", kFiller));
  add("an error that does not end", floods("-ERR ", kFiller));
  add("a number that does not end", floods(":", std::string(16 * 1024, '7')));
  add("a length that does not end", floods("$", std::string(16 * 1024, '1')));
  add("a length beyond any memory", floods("$999999999999\r\n", kFiller));
  add("a length beyond any number", answers("$99999999999999999999999999\r\n"));
  add("a length just above the bound", floods("$67108865\r\n", kFiller));
  add("a length below zero", answers("$-5\r\n"));
  add("a length that is no number", answers("$abc\r\n"));
  add("a value shorter than it says, then silence", answers_and_stalls("$1000\r\nabc"));
  add("a value shorter than it says, then the end", answers_and_closes("$1000\r\nabc"));
  add("a value longer than it says", answers("$3\r\nabcdef\r\n"));
  add("a value without its end", answers("$3\r\nabcXY"));
  add("a value and a flood", floods("$3\r\nabc\r\n", kFiller));
  add("two answers to one question", answers("$-1\r\n$3\r\nabc\r\n"));
  add("an array of a billion", answers("*1000000000\r\n"));
  add("arrays in arrays", floods("", "*1\r\n"));
  add("a map of the newer protocol", answers("%2\r\n+a\r\n+b\r\n"));
  add("a push of the newer protocol", answers(">1\r\n+a\r\n"));
  add("a status for a value", answers("+OK\r\n"));
  add("a number for a value", answers(":1\r\n"));
  add("moved to another server", answers("-MOVED 1234 10.0.0.1:6379\r\n"));
  add("still loading", answers("-LOADING Redis is loading the dataset in memory\r\n"));
  add("wants a password", answers("-NOAUTH Authentication required.\r\n"));
  add("an error with the cursor's commands", answers("-ERR \x1b[2J\x1b]0;x\x07\r\n"));
  add("speaks HTTP", answers(response("value")));
  add("a value a byte at a time", drips("$1000\r\n", kFiller));
  add("a length a byte at a time", drips("", "$1000000000000000000000000000000000000000000000"));
  for (const auto& [name, value] : false_values()) add(name, answers(bulk(value)));
}

void add_http(std::vector<Behaviour>& all) {
  add_of_any_kind(all, "http");
  const auto add = [&](const char* name, RogueServer::Script script) {
    all.push_back({name, "http", std::move(script)});
  };
  add("a status line that does not end", floods("HTTP/1.1 200 ", kFiller));
  add("a header that does not end", floods("HTTP/1.1 200 OK\r\nX: ", kFiller));
  add("headers that do not end", floods("HTTP/1.1 200 OK\r\n", "X-Again: again\r\n"));
  add("`continue` without end", floods("", "HTTP/1.1 100 Continue\r\n\r\n"));
  add("early hints without end", floods("", "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"));
  add("a length it does not keep, then silence",
      answers_and_stalls("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nabc"));
  add("a length it does not keep, then the end",
      answers_and_closes("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nabc"));
  add("more than its length",
      answers_and_closes("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n" + kFiller));
  add("a length beyond any memory",
      floods("HTTP/1.1 200 OK\r\nContent-Length: 999999999999999\r\n\r\n", kFiller));
  add("a length below zero", answers("HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\nabc"));
  add("a length that is no number", answers("HTTP/1.1 200 OK\r\nContent-Length: abc\r\n\r\nabc"));
  add("two lengths",
      answers("HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 900\r\n\r\nabc"));
  add("a body without end", floods("HTTP/1.1 200 OK\r\n\r\n", kFiller));
  add("chunks without end", floods("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
                                   "1000\r\n" + std::string(0x1000, 'a') + "\r\n"));
  add("a chunk beyond any memory",
      floods("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nFFFFFFFFFFFFFFF\r\n", kFiller));
  add("a chunk whose length is none",
      answers("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nabc\r\n"));
  add("a chunk's extension without end",
      floods("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;x=", kFiller));
  add("chunks without the last",
      answers_and_closes("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n"));
  add("trailers without end",
      floods("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n", "X-Again: again\r\n"));
  add("a bomb that is packed",
      answers(response(std::string(30'000, '\x1f'), "Content-Encoding: gzip\r\n")));
  add("a redirect to itself",
      answers("HTTP/1.1 302 Found\r\nLocation: /\r\nContent-Length: 0\r\n\r\n"));
  add("a redirect to a file",
      answers("HTTP/1.1 301 Moved\r\nLocation: file:///etc/passwd\r\nContent-Length: 0\r\n\r\n"));
  add("another protocol from here on",
      answers_and_stalls("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n"));
  for (const char* line : {"204 No Content", "206 Partial Content", "304 Not Modified",
                           "401 Unauthorized", "403 Forbidden", "429 Too Many Requests", "500 Oops",
                           "503 Unavailable", "999 What", "000 None"}) {
    add(line, answers(status(line)));
  }
  add("HTTP of the first version", answers_and_closes("value"));
  add("HTTP of a version to come", answers("HTTP/9.9 200 OK\r\nContent-Length: 3\r\n\r\nabc"));
  add("the preface of HTTP/2", answers("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"));
  add("a header with the cursor's commands",
      answers(response("value", "X: \x1b[2J\x1b]0;x\x07\r\n")));
  add("speaks Redis", answers(bulk("value")));
  add("headers a byte at a time", drips("HTTP/1.1 200 OK\r\n", "X-Slow: " + kFiller));
  add("a value a byte at a time",
      drips("HTTP/1.1 200 OK\r\nContent-Length: 16000\r\n\r\n", kFiller));
  for (const auto& [name, value] : false_values()) add(name, answers(response(value)));
}

void add_tls(std::vector<Behaviour>& all) {
  for (const char* scheme : {"https", "rediss"}) {
    all.push_back({"says nothing to a greeting", scheme, answers_and_stalls("")});
    all.push_back({"answers a greeting in plain text", scheme, answers(response("value"))});
    all.push_back({"begins a handshake and stops", scheme,
                   answers_and_stalls(std::string("\x16\x03\x03\x40\x00\x02\x00\x3f\xfc", 9))});
    all.push_back({"a handshake that does not end", scheme,
                   floods(std::string("\x16\x03\x03\x40\x00\x02\x00\xff\xfc", 9), kFiller)});
    all.push_back({"an alert", scheme, answers(std::string("\x15\x03\x03\x00\x02\x02\x28", 7))});
    all.push_back({"closes under a greeting", scheme, answers_and_closes("")});
    all.push_back({"a handshake a byte at a time", scheme,
                   drips(std::string("\x16\x03\x03\x40\x00", 5), kFiller)});
  }
}

std::vector<Behaviour> behaviours() {
  std::vector<Behaviour> all;
  add_redis(all);
  add_http(all);
  add_tls(all);
  return all;
}

milliseconds since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration_cast<milliseconds>(std::chrono::steady_clock::now() - start);
}

std::unique_ptr<Cache> cache_at(const RogueServer& server, const char* scheme,
                                milliseconds first_byte = kFirstByte) {
  Machine machine;
  machine.with_remote(server.url(scheme));
  machine.options.remotes.front().first_byte = first_byte;
  machine.options.directories.clear();
  return machine.open();
}

}  // namespace

TEST_CASE("whatever a rogue server does is a miss within a look-up's bound",
          "[cache][remote][rogue]") {
  const auto all = behaviours();
  REQUIRE(all.size() >= 40);
  const KeyRecord key = wanted().key;
  for (const Behaviour& behaviour : all) {
    INFO(behaviour.scheme << ": " << behaviour.name);
    const RogueServer server(behaviour.script);
    const auto cache = cache_at(server, behaviour.scheme);
    const auto start = std::chrono::steady_clock::now();
    const auto found = cache->find(key);
    CHECK(since(start) < kWhole + kSlack);
    CHECK_FALSE(found);
  }
}

TEST_CASE("a server that behaves is believed, so that the rogue ones are put to a fair trial",
          "[cache][remote][rogue]") {
  const std::string value = seal(wanted(), sample_signer(1));
  for (const auto& [scheme, answer] :
       {std::pair{"redis", bulk(value)}, {"http", response(value)}}) {
    const RogueServer server(answers(answer));
    CHECK(cache_at(server, scheme, std::chrono::seconds(30))->find(wanted().key));
  }
}

TEST_CASE("storing, asking and taking a lease are bounded against a rogue server too",
          "[cache][remote][rogue]") {
  const Patience patience{milliseconds(20), milliseconds(200)};
  const std::string value(200'000, 'v');
  for (const Behaviour& behaviour : behaviours()) {
    INFO(behaviour.scheme << ": " << behaviour.name);
    const RogueServer server(behaviour.script);
    const auto remote = test::remote_at(server.url(behaviour.scheme));
    const auto start = std::chrono::steady_clock::now();
    (void)test::put(*remote, wanted().key, value, patience);
    (void)test::has(*remote, wanted().key, patience);
    if (LeaseBoard* board = remote->leases()) {
      Deadline deadline(patience);
      (void)board->take(wanted().key.key, "token start", milliseconds(1'000), deadline);
    }
    CHECK(since(start) < 4 * patience.whole + kSlack);
  }
}

TEST_CASE("a line that never ends costs no more than its bound", "[cache][remote][rogue]") {
  // As much as a look-up of two seconds could be sent: what is read of it is bounded, not timed.
  const RogueServer server(floods("+", kFiller));
  const auto remote = test::remote_at(server.url("redis"));
  const auto found = test::get(*remote, wanted().key);
  REQUIRE_FALSE(found);
  CHECK(found.error().detail == "too_long");
}

TEST_CASE("headers that never end cost no more than their bound", "[cache][remote][rogue]") {
  const RogueServer server(floods("HTTP/1.1 200 OK\r\n", "X-Again: again\r\n"));
  const auto remote = test::remote_at(server.url("http"));
  const auto found = test::get(*remote, wanted().key);
  REQUIRE_FALSE(found);
  CHECK(found.error().detail == "too_long");
}

}  // namespace broach::cache::remote
