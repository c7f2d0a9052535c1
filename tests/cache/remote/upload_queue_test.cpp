#include "cache/remote/upload_queue.hpp"

#include <atomic>
#include <future>
#include <vector>

#include "tests/support/catch.hpp"

namespace broach::cache::remote {
namespace {

using std::chrono::milliseconds;
constexpr milliseconds kLong{60'000};

Upload upload_named(const std::string& name, std::size_t bytes = 10) {
  return {KeyBuilder().field("name", name).finish(),
          std::string(bytes, 'x'),
          Upload::Where::kEverywhere,
          {}};
}

/// A remote that takes the first value and answers when the test says so, or when it is stopped.
struct Stuck {
  std::promise<void> began;
  std::promise<void> answer;
  std::atomic<bool> was_stopped{false};
  std::atomic<int> sent{0};

  UploadQueue::Send send() {
    return [this, go = answer.get_future().share()](const Upload&, const std::stop_token& stop) {
      if (sent++ == 0) began.set_value();
      const std::stop_callback stopped(stop, [this] { was_stopped = true; });
      while (go.wait_for(milliseconds(1)) != std::future_status::ready) {
        if (stop.stop_requested()) return Upload::Fate::kLost;
      }
      return Upload::Fate::kStored;
    };
  }
};

}  // namespace

TEST_CASE("uploads are sent in order, and draining waits for the last", "[cache][remote][upload]") {
  std::vector<Key> sent;
  UploadQueue queue({}, [&](const Upload& upload, const std::stop_token&) {
    sent.push_back(upload.key.key);
    return Upload::Fate::kStored;
  });
  std::atomic<int> stored{0};
  std::vector<Key> wanted;
  for (int i = 0; i < 20; ++i) {
    Upload upload = upload_named(std::to_string(i));
    upload.ended = [&](Upload::Fate fate) { stored += fate == Upload::Fate::kStored ? 1 : 0; };
    wanted.push_back(upload.key.key);
    REQUIRE(queue.offer(upload));
  }
  REQUIRE(queue.drain(kLong));
  CHECK(sent == wanted);
  CHECK(stored == 20);
}

TEST_CASE("a queue that is full, in number or in bytes, turns uploads away",
          "[cache][remote][upload]") {
  Stuck remote;
  UploadQueue queue({2, 100}, remote.send());
  Upload first = upload_named("first", 40);
  REQUIRE(queue.offer(first));
  remote.began.get_future().wait();  // It is on its way, and waits no more.

  Upload large = upload_named("large", 61);
  CHECK_FALSE(queue.offer(large));
  CHECK(large.value.size() == 61);
  Upload second = upload_named("second");
  Upload third = upload_named("third");
  Upload fourth = upload_named("fourth");
  CHECK(queue.offer(second));
  CHECK(queue.offer(third));
  CHECK_FALSE(queue.offer(fourth));

  remote.answer.set_value();
  REQUIRE(queue.drain(kLong));
  CHECK(queue.offer(fourth));
  REQUIRE(queue.drain(kLong));
  CHECK(remote.sent == 4);
}

TEST_CASE("closing gives up a remote that does not answer, and every upload hears of it",
          "[cache][remote][upload]") {
  Stuck remote;
  UploadQueue queue({}, remote.send());
  std::atomic<int> lost{0};
  for (const char* name : {"first", "second", "third"}) {
    Upload upload = upload_named(name);
    upload.ended = [&](Upload::Fate fate) { lost += fate == Upload::Fate::kLost ? 1 : 0; };
    REQUIRE(queue.offer(upload));
  }
  remote.began.get_future().wait();
  CHECK_FALSE(queue.drain(milliseconds(1)));
  CHECK(queue.close() == 2);
  CHECK(remote.was_stopped);
  CHECK(lost == 3);
  Upload late = upload_named("late");
  CHECK_FALSE(queue.offer(late));
}

}  // namespace broach::cache::remote
