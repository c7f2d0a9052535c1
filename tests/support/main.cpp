#if !__has_include(<catch2/catch_all.hpp>)
#define CATCH_CONFIG_RUNNER
#endif
#include "tests/support/catch.hpp"

#include <iostream>
#include <map>
#include <mutex>
#include <vector>

namespace broach::test {
namespace {

#if __has_include(<catch2/catch_all.hpp>)
using ListenerBase = Catch::EventListenerBase;
const Catch::TestCaseInfo& info_of(const Catch::TestCaseStats& stats) { return *stats.testInfo; }
#else
using ListenerBase = Catch::TestEventListenerBase;
const Catch::TestCaseInfo& info_of(const Catch::TestCaseStats& stats) { return stats.testInfo; }
#endif

std::mutex skips_mutex;
std::map<std::string, int>& skips() {
  static std::map<std::string, int> by_reason;
  return by_reason;
}

std::vector<std::string>& silent_cases() {
  static std::vector<std::string> names;
  return names;
}

// Catch's own warning looks at each section alone; a section may well set up what the case asserts
// after it. A case that asserts nothing at all is the fault.
class SilentCases : public ListenerBase {
 public:
  using ListenerBase::ListenerBase;
  void testCaseEnded(const Catch::TestCaseStats& stats) override {
    if (stats.totals.assertions.total() == 0) {
      silent_cases().push_back(std::string(info_of(stats).name));
    }
  }
};

}  // namespace

void note_skip(const std::string& reason) {
  const std::lock_guard lock(skips_mutex);
  ++skips()[reason];
}

CATCH_REGISTER_LISTENER(SilentCases)

}  // namespace broach::test

#ifdef __SANITIZE_THREAD__
// A case forks while workers of earlier cases live, which is what an engine does; by default the
// sanitizer ends a child of such a fork that starts a thread.
extern "C" [[gnu::visibility("default")]] const char* __tsan_default_options() {
  return "die_after_fork=0";
}
#endif

int main(int argc, char* argv[]) {
  int status = Catch::Session().run(argc, argv);
  for (const std::string& name : broach::test::silent_cases()) {
    std::cout << "FAILED: the test case \"" << name << "\" asserts nothing\n";
    status = 1;
  }
  int total = 0;
  for (const auto& [reason, count] : broach::test::skips()) {
    std::cout << "skipped " << count << ": " << reason << '\n';
    total += count;
  }
  std::cout << total << " test cases skipped\n";
  return status;
}
