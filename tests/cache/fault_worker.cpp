// Makes every system call of a look-up, a publish and a listing fail in turn, and checks that no
// request fails, that no wrong byte is served, and that nothing damaged is left.
//   cache_fault_worker DIRECTORY CALL    exit 0 when all held; prints how many faults were injected
//   cache_fault_worker DIRECTORY --self-test    exit 1: a broken promise is noticed
#include <array>
#include <cerrno>
#include <iostream>
#include <set>
#include <string>

#include "cache/os_error.hpp"
#include "tests/cache/fault_calls.hpp"
#include "tests/cache/samples.hpp"

namespace broach::cache {
namespace {

namespace fs = std::filesystem;
using test::Fault;
using test::Opened;

// The last is what a network file system says of a file that was replaced.
constexpr std::array kErrors = {ENOSPC, EDQUOT, EIO, EROFS, EACCES, EMFILE, ESTALE};

// A scenario makes no more calls of one kind than this; reaching it means that a fault never ends.
constexpr int kMostCalls = 400;

struct Trial {
  fs::path dir;
  Fault fault;
  int failures = 0;

  void check(bool held, std::string_view what) {
    if (held) return;
    ++failures;
    std::cerr << fault.call << " #" << fault.nth << " " << errno_symbol(fault.error)
              << (fault.span == Fault::Span::kOnce ? " once" : " from then on") << ": " << what
              << '\n';
  }
};

void check_notices(Trial& trial, const Opened& cache) {
  const std::set<std::string> distinct(cache.notices->begin(), cache.notices->end());
  trial.check(distinct.size() == cache.notices->size(), "a notice was given twice");
}

// What a process does, with a fault somewhere in it. Returns how many faults there were.
int under_fault(Trial& trial) {
  const Object stored = test::sample_object("stored");
  const Object made = test::sample_object("made");
  test::arm(trial.fault);
  {
    Opened cache({trial.dir / "cache"});
    const auto found = cache->find(stored.key);
    trial.check(!found || *found->object == stored, "a look-up served wrong bytes");
    const auto hit =
        cache->find_or_make(made.key, [&](const Stage&) -> Result<Object> { return made; });
    trial.check(hit && *hit->object == made, "a request for a binary failed");
    cache->remember_memo("name", "value");
    const auto memo = cache->memo("name");
    trial.check(memo == "value", "a memo was lost in the process that made it");
    cache->record_miss({"family", "{}", "target", 1, 1});
    (void)cache->entries();
    (void)cache->verify();
    check_notices(trial, cache);
  }
  return test::disarm();
}

void afterwards(Trial& trial) {
  const Object stored = test::sample_object("stored");
  const Object made = test::sample_object("made");
  Opened cache({trial.dir / "cache"});
  const auto report = cache->verify();
  trial.check(report && report->damaged == 0, "a damaged object was left");
  for (const Object& object : {stored, made}) {
    const auto hit =
        cache->find_or_make(object.key, [&](const Stage&) -> Result<Object> { return object; });
    trial.check(hit && *hit->object == object, "a request failed after the fault was gone");
  }
  GcRequest sweep;
  sweep.mode = GcRequest::Mode::kRemove;
  trial.check(cache->gc(sweep).ok(), "a sweep failed after the fault was gone");
  trial.check(cache->entries()->size() == 2, "the listing is not what is there");
  trial.check(test::files_in(trial.dir / "cache" / "tmp") == 0, "a temporary file was left");
  trial.check(test::files_in(trial.dir / "cache" / "locks") == 0, "a lock was left");
}

enum class Start { kFilled, kEmpty };

struct Tally {
  int injected = 0;
  int failures = 0;
};

// One process's life with a fault in it; returns how many calls failed.
int fail(const fs::path& dir, const Fault& fault, Start start, Tally& tally) {
  Trial trial{dir / "trial", fault};
  fs::create_directory(trial.dir);
  if (start == Start::kFilled) {
    Opened({trial.dir / "cache"})->publish(test::sample_object("stored"));
  }
  const int faults = under_fault(trial);
  afterwards(trial);
  fs::remove_all(trial.dir);
  trial.check(faults == 0 || fault.nth < kMostCalls, "the calls never end");
  tally.injected += faults;
  tally.failures += trial.failures;
  return faults;
}

// Fails the first, second, … call of a kind until a trial has fewer calls than that.
void fail_each(const fs::path& dir, Fault fault, Start start, Tally& tally) {
  for (fault.nth = 1; fault.nth <= kMostCalls; ++fault.nth) {
    if (fail(dir, fault, start, tally) == 0) return;
  }
}

int fail_one_call(const fs::path& dir, std::string_view call) {
  Tally tally;
  if (call == "fcntl") {
    // SQLite's locks alone. It waits for one that it does not get: a file system without locks, and
    // not each call of each error, or the trials would take minutes.
    fail(dir, {call, 1, ENOLCK, Fault::Span::kFromThenOn, Fault::Effect::kNone}, Start::kFilled,
         tally);
    std::cout << tally.injected << std::endl;
    return tally.failures == 0 ? 0 : 1;
  }
  for (const int error : kErrors) {
    for (const Fault::Span span : {Fault::Span::kOnce, Fault::Span::kFromThenOn}) {
      fail_each(dir, {call, 1, error, span, Fault::Effect::kNone}, Start::kFilled, tally);
    }
  }
  // A network file system may do what it was asked and lose the answer; asked again, it says that
  // the old name is gone or the new one is there.
  for (const std::string_view lossy : {"renameat", "mkdirat", "unlinkat", "fsync"}) {
    if (call != lossy) continue;
    for (const int error : {ENOENT, EEXIST, EBUSY, ESTALE}) {
      fail_each(dir, {call, 1, error, Fault::Span::kOnce, Fault::Effect::kDone}, Start::kFilled,
                tally);
    }
  }
  // The calls that make a cache are few and fail alike: one error of each kind will do.
  for (const int error : {ENOSPC, EACCES}) {
    fail_each(dir, {call, 1, error, Fault::Span::kOnce, Fault::Effect::kNone}, Start::kEmpty,
              tally);
  }
  std::cout << tally.injected << std::endl;
  return tally.failures == 0 ? 0 : 1;
}

// An object that is damaged behind the cache's back must be reported by the checks above.
int self_test(const fs::path& dir) {
  Trial trial{dir / "trial", {"none", 1, EIO, Fault::Span::kOnce, Fault::Effect::kNone}};
  fs::create_directory(trial.dir);
  const Object stored = test::sample_object("stored");
  Opened({trial.dir / "cache"})->publish(stored);
  fs::resize_file(test::object_path(trial.dir / "cache", stored.key.key), 100);
  afterwards(trial);
  return trial.failures == 0 ? 0 : 1;
}

}  // namespace
}  // namespace broach::cache

int main(int argc, char* argv[]) {
  if (argc != 3) return 2;
  const std::string_view call = argv[2];
  return call == "--self-test" ? broach::cache::self_test(argv[1])
                               : broach::cache::fail_one_call(argv[1], call);
}
