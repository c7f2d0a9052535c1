#if !__has_include(<catch2/catch_all.hpp>)
#define CATCH_CONFIG_RUNNER
#endif
#include "tests/support/catch.hpp"

#include <iostream>
#include <map>
#include <mutex>

namespace broach::test {
namespace {

std::mutex skips_mutex;
std::map<std::string, int>& skips() {
  static std::map<std::string, int> by_reason;
  return by_reason;
}

}  // namespace

void note_skip(const std::string& reason) {
  const std::lock_guard lock(skips_mutex);
  ++skips()[reason];
}

}  // namespace broach::test

int main(int argc, char* argv[]) {
  const int status = Catch::Session().run(argc, argv);
  int total = 0;
  for (const auto& [reason, count] : broach::test::skips()) {
    std::cout << "skipped " << count << ": " << reason << '\n';
    total += count;
  }
  std::cout << total << " test cases skipped\n";
  return status;
}
