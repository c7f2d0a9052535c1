// Lets something happen at every system call of a look-up, a publish and a listing in turn, and
// checks that no request fails, that no wrong byte is served, and that nothing damaged is left.
//   cache_fault_worker DIRECTORY TRIAL CALL
// TRIAL is what happens at the CALL: it fails ("errors", "layers"), the process is killed
// ("kills"), the cache's directory is removed ("vanishing"), or links are put in its place
// ("planted"). Prints how often it happened; exit status 0 when all held.
//   cache_fault_worker DIRECTORY remote CALL URL      a call fails by which a remote is asked
//   cache_fault_worker DIRECTORY clock -      the wall clock is set back, and forth
//   cache_fault_worker DIRECTORY self-test -  exit 1: a broken promise is noticed
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <functional>
#include <iostream>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tests/cache/fault_trial.hpp"

namespace broach::cache {
namespace {

namespace fs = std::filesystem;
using test::Fault;
using test::Opened;
using test::Surroundings;
using test::Trial;

// The last is what a network file system says of a file that was replaced.
constexpr std::array kErrors = {ENOSPC, EDQUOT, EIO, EROFS, EACCES, EMFILE, ESTALE};

// A scenario makes no more calls of one kind than this; reaching it means that a fault never ends.
constexpr int kMostCalls = 600;

enum class Start { kFilled, kEmpty };

using Scenario = std::function<int(Trial&)>;

struct Tally {
  int happened = 0;
  int failures = 0;
};

class Trials {
 public:
  explicit Trials(fs::path dir) : dir_(std::move(dir)), around_(dir_) {}

  /// One process's life with a fault in it; returns how often the fault happened.
  int one(const Fault& fault, Start start, const Scenario& scenario) {
    Trial trial{dir_ / "trial", around_, fault};
    fs::create_directory(trial.dir);
    if (start == Start::kFilled) {
      Opened({trial.cache()})->publish(test::sample_object("stored"));
    }
    const int happened = scenario(trial);
    test::afterwards(trial);
    fs::remove_all(trial.dir);
    trial.check(happened == 0 || fault.nth < kMostCalls, "the calls never end");
    tally_.happened += happened;
    tally_.failures += trial.failures;
    return happened;
  }

  /// At the first, second, … call of a kind until a trial has fewer calls than that.
  void each(Fault fault, Start start, const Scenario& scenario) {
    for (fault.nth = 1; fault.nth <= kMostCalls; ++fault.nth) {
      if (one(fault, start, scenario) == 0) return;
    }
  }

  const Surroundings& around() const { return around_; }
  fs::path cache() const { return dir_ / "trial" / "cache"; }

  int end() const {
    std::cout << tally_.happened << std::endl;
    return tally_.failures == 0 ? 0 : 1;
  }

 private:
  fs::path dir_;
  Surroundings around_;
  Tally tally_;
};

Fault failing(std::string_view call, int error, Fault::Span span = Fault::Span::kOnce,
              Fault::Effect effect = Fault::Effect::kNone) {
  Fault fault;
  fault.call = call;
  fault.error = error;
  fault.span = span;
  fault.effect = effect;
  return fault;
}

void fail_one_call(Trials& trials, std::string_view call) {
  const Scenario requests = test::requests_under_fault;
  if (call == "fcntl") {
    // SQLite's locks alone. It waits for one that it does not get: a file system without locks, and
    // not each call of each error, or the trials would take minutes.
    trials.one(failing(call, ENOLCK, Fault::Span::kFromThenOn), Start::kFilled, requests);
    return;
  }
  for (const int error : kErrors) {
    for (const Fault::Span span : {Fault::Span::kOnce, Fault::Span::kFromThenOn}) {
      trials.each(failing(call, error, span), Start::kFilled, requests);
    }
  }
  // A network file system may do what it was asked and lose the answer; asked again, it says that
  // the old name is gone or the new one is there.
  for (const std::string_view lossy : {"renameat", "mkdirat", "unlinkat", "fsync"}) {
    if (call != lossy) continue;
    for (const int error : {ENOENT, EEXIST, EBUSY, ESTALE}) {
      trials.each(failing(call, error, Fault::Span::kOnce, Fault::Effect::kDone), Start::kFilled,
                  requests);
    }
  }
  // The calls that make a cache are few and fail alike: one error of each kind will do.
  for (const int error : {ENOSPC, EACCES}) {
    trials.each(failing(call, error), Start::kEmpty, requests);
  }
}

void fail_in_layers(Trials& trials, std::string_view call) {
  if (call == "fcntl") return;  // Only the index calls it, and waits: see above.
  for (const int error : kErrors) {
    trials.each(failing(call, error), Start::kFilled, test::layers_under_fault);
  }
}

void fail_in_remote(Trials& trials, std::string_view call, const std::string& url) {
  for (const int error : {EMFILE, ENOBUFS, EIO, EACCES, ECONNREFUSED, ECONNRESET, EPIPE, EAGAIN}) {
    for (const Fault::Span span : {Fault::Span::kOnce, Fault::Span::kFromThenOn}) {
      // "Later", for ever, is a remote that stalls: each trial would last as long as its patience.
      if (error == EAGAIN && span == Fault::Span::kFromThenOn) continue;
      trials.each(failing(call, error, span), Start::kFilled,
                  [&](Trial& trial) { return test::remote_under_fault(trial, url); });
    }
  }
}

// The requests in a process of their own, which the fault may kill.
Scenario in_a_child(const Scenario& scenario) {
  return [scenario](Trial& trial) {
    const pid_t child = fork();
    if (child == 0) {
      (void)scenario(trial);
      _exit(trial.failures == 0 ? 0 : 1);
    }
    int status = 0;
    waitpid(child, &status, 0);
    const bool killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
    trial.check(killed || (WIFEXITED(status) && WEXITSTATUS(status) == 0),
                "a process ended otherwise than it should");
    return killed ? 1 : 0;
  };
}

void kill_at(Trials& trials, std::string_view call) {
  Fault fault;
  fault.call = call;
  fault.meanwhile = [] { (void)raise(SIGKILL); };
  trials.each(fault, Start::kFilled, in_a_child(test::requests_under_fault));
}

void remove_at(Trials& trials, std::string_view call) {
  Fault fault;
  fault.call = call;
  fault.meanwhile = [cache = trials.cache()] { fs::remove_all(cache); };
  trials.each(fault, Start::kFilled, test::requests_under_fault);
}

/// Every file below a directory with what it holds.
std::map<std::string, std::string> files_below(const fs::path& dir) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(dir)) {
    files[entry.path()] = entry.is_regular_file() ? test::read_text(entry.path()) : "";
  }
  return files;
}

// A link to an enemy's place is put where the cache keeps something. Afterwards the enemy's place
// is as it was, and the cache, once rid of the link, too.
void plant_at(Trials& trials, std::string_view call) {
  const std::string hex = test::sample_key("stored").key.hex();
  const std::string shelf = "objects/" + hex.substr(0, 2);
  for (const std::string& name :
       {std::string("objects"), shelf, shelf + "/" + hex, std::string("tmp"), std::string("locks"),
        std::string("index.sqlite3"), std::string("failures")}) {
    Fault fault;
    fault.call = call;
    const fs::path place = trials.cache() / name;
    const fs::path aside = trials.cache().parent_path() / "aside";
    const fs::path target = trials.around().planted / name;
    fault.meanwhile = [=] {
      std::error_code absent;
      fs::rename(place, aside, absent);
      fs::create_symlink(target, place, absent);
    };
    trials.each(fault, Start::kFilled, [&](Trial& trial) {
      const auto before = files_below(trials.around().planted);
      const int happened = test::requests_under_fault(trial);
      trial.check(files_below(trials.around().planted) == before,
                  name + ": a link out of the cache was followed");
      if (fs::is_symlink(fs::symlink_status(place))) fs::remove(place);
      return happened;
    });
  }
}

// A clock that is wrong hides nothing, damages nothing, and makes no request fail.
void set_clock_back(Trials& trials) {
  constexpr std::int64_t kDay = 86'400;
  for (const std::int64_t off : {-kDay, -3'650 * kDay, 3'650 * kDay}) {
    Fault none;
    none.call = "none";
    trials.one(none, Start::kFilled, [off](Trial& trial) {
      test::set_clock_off(off < 0 ? 0 : off);
      {
        Opened cache({trial.cache()});
        (void)cache->find_or_make(test::sample_key("bad"), [](const Stage&) -> Result<Object> {
          return Error{ErrorCode::kCompileFailed, "does not compile", "log"};
        });
        cache->publish(test::sample_object("another"));
        fs::resize_file(test::object_path(trial.cache(), test::sample_key("another").key), 50);
        (void)cache->verify();
      }
      test::set_clock_off(off < 0 ? off : 0);  // Back: to the past, or from a future to now.
      (void)test::requests_under_fault(trial);
      Opened cache({trial.cache()});
      trial.check(!cache->failure(test::sample_key("bad").key), "a failure of the future counts");
      trial.check(cache->quarantine()->size() == 1, "what was set aside is forgotten");
      GcRequest one;
      one.object_budget = 1;
      one.mode = GcRequest::Mode::kRemove;
      trial.check(cache->gc(one)->objects_left == 1, "eviction does not keep the budget");
      return 1;
    });
    test::set_clock_off(0);
  }
}

// An object that is damaged behind the cache's back must be reported by the checks.
int self_test(const fs::path& dir) {
  const Surroundings around(dir);
  Trial trial{dir / "trial", around, failing("none", EIO)};
  fs::create_directory(trial.dir);
  const Object stored = test::sample_object("stored");
  Opened({trial.cache()})->publish(stored);
  fs::resize_file(test::object_path(trial.cache(), stored.key.key), 100);
  test::afterwards(trial);
  return trial.failures == 0 ? 0 : 1;
}

int run(const fs::path& dir, const std::string& trial, const std::string& call,
        const std::string& url) {
  if (trial == "self-test") return self_test(dir);
  Trials trials(dir);
  const std::map<std::string, std::function<void()>> known = {
      {"errors", [&] { fail_one_call(trials, call); }},
      {"layers", [&] { fail_in_layers(trials, call); }},
      {"remote", [&] { fail_in_remote(trials, call, url); }},
      {"kills", [&] { kill_at(trials, call); }},
      {"vanishing", [&] { remove_at(trials, call); }},
      {"planted", [&] { plant_at(trials, call); }},
      {"clock", [&] { set_clock_back(trials); }},
  };
  const auto found = known.find(trial);
  if (found == known.end()) return 2;
  found->second();
  return trials.end();
}

}  // namespace
}  // namespace broach::cache

int main(int argc, char* argv[]) {
  if (argc != 4 && argc != 5) return 2;
  return broach::cache::run(argv[1], argv[2], argv[3], argc == 5 ? argv[4] : "");
}
