// Fails the n-th allocation, for every n, and every one from the n-th on, through what an engine
// does with the C interface: create, first use, launch, destroy. Each must end in a status or in
// service, never in an abort, a crash or a wait; and afterwards, with memory again, the same
// process must be served.
//
//   allocation_sweep cold|warm|background nth|all STRIDE [FIRST]
//
// Each n runs in a child process of its own. Exit status 0 when every one held.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "broach/broach.h"
#include "broach/window_rows.h"
#include "tests/runtime/failing_malloc.hpp"

namespace {

namespace fs = std::filesystem;
using broach::test::Failing;

constexpr unsigned kPatienceS = 120;  // A child that takes longer waits for something.
constexpr int kHeadDim = 64;

enum Verdict : int { kHeld = 0, kWrongOutput = 1, kBadStatus = 2, kLeftOver = 3, kNoService = 4 };

std::string worker;    // broach-rtc
std::string compiler;  // The script below.
int32_t first_use = BROACH_FIRST_USE_WAIT;

/// Compiles each source once and then hands out copies, so that thousands of cold runs take
/// seconds.
void write_compiler(const fs::path& folder) {
  compiler = (folder / "c++").string();
  std::ofstream(compiler)
      << "#!/bin/sh\n"
         "out=; last=\n"
         "for word in \"$@\"; do\n"
         "  [ \"$last\" = -o ] && out=$word\n"
         "  last=$word\n"
         "done\n"
         "[ -n \"$out\" ] || exec c++ \"$@\"\n"
         "cat >\"$out.cpp\"\n"
         "made=" +
             folder.string() +
             "/$(sha256sum <\"$out.cpp\" | cut -c1-32).so\n"
             "if [ ! -e \"$made\" ]; then\n"
             "  c++ \"$@\" <\"$out.cpp\" && cp \"$out\" \"$made.$$\" && mv \"$made.$$\" "
             "\"$made\"\n"
             "fi\n"
             "cp \"$made\" \"$out\"\n";
  ::chmod(compiler.c_str(), 0700);
}

struct Statuses {
  broach_status created = BROACH_OK;
  broach_status found = BROACH_OK;
  broach_status launched = BROACH_OK;
  Verdict verdict = kHeld;

  bool served() const {
    return created == BROACH_OK && found == BROACH_OK && launched == BROACH_OK;
  }
};

bool is_known(broach_status status) {
  return std::strcmp(broach_status_name(status), "unknown") != 0;
}

/// One row that sees one key: the output is the key's value.
broach_status decode(const broach_window_rows_decode* op, bool& right) {
  alignas(16) static std::uint16_t q[kHeadDim], k[kHeadDim], v[kHeadDim], out[kHeadDim];
  alignas(16) static char workspace[1 << 16];
  for (int d = 0; d < kHeadDim; ++d) v[d] = 0x4100;  // 8
  std::memset(out, 0, sizeof out);
  const std::int32_t zero = 0;
  broach_window_rows_decode_args args;
  std::memset(&args, 0, sizeof args);
  args.size = sizeof args;
  args.attention.q = q;
  args.attention.out = out;
  args.attention.rows = 1;
  args.attention.scale = 1;
  args.cache.k = k;
  args.cache.v = v;
  args.cache.kv_heads = args.cache.slots = args.cache.length = 1;
  args.positions = &zero;
  args.slots = &zero;
  args.workspace = workspace;
  args.workspace_bytes = sizeof workspace;
  const broach_status status = broach_window_rows_decode_launch(op, &args, nullptr, nullptr);
  right = true;
  for (int d = 0; d < kHeadDim; ++d) right &= out[d] == 0x4100;
  return status;
}

/// What an engine does, once.
Statuses use(const std::string& cache) {
  Statuses ended;
  const char* directories[] = {cache.c_str()};
  broach_runtime_options options;
  std::memset(&options, 0, sizeof options);
  options.size = sizeof options;
  options.device = "host";
  options.first_use = first_use;
  options.jobs = 1;
  options.cache_directories = directories;
  options.cache_directory_count = 1;
  options.worker = worker.c_str();
  options.notice = [](void*, const char*) {};
  broach_runtime* runtime = nullptr;
  char text[256];
  broach_message message = {text, sizeof text, 0};
  ended.created = broach_runtime_create(&options, &runtime, &message);
  if ((ended.created == BROACH_OK) != (runtime != nullptr)) ended.verdict = kLeftOver;
  if (ended.created != BROACH_OK) return ended;

  broach_window_rows_shape shape;
  std::memset(&shape, 0, sizeof shape);
  shape.size = sizeof shape;
  shape.head_dim = kHeadDim;
  shape.gqa_ratio = 1;
  shape.arith = BROACH_ARITH_CHUNK256;
  broach_window_rows_decode* op = nullptr;
  ended.found = broach_window_rows_decode_create(runtime, &shape, nullptr, &op, &message);
  if ((ended.found == BROACH_OK) != (op != nullptr)) ended.verdict = kLeftOver;
  if (ended.found == BROACH_OK) {
    bool right = false;
    ended.launched = decode(op, right);
    if (ended.launched == BROACH_OK && !right) ended.verdict = kWrongOutput;
  }
  broach_window_rows_decode_destroy(op);
  broach_runtime_destroy(runtime);
  return ended;
}

/// The child's whole life.
int try_one(const std::string& cache, Failing which, std::uint64_t n) {
  ::alarm(kPatienceS);
  broach::test::fail_allocations(which, n);
  const Statuses armed = use(cache);
  broach::test::fail_allocations(Failing::kNothing, 0);
  if (armed.verdict != kHeld) return armed.verdict;
  if (!is_known(armed.created) || !is_known(armed.found) || !is_known(armed.launched)) {
    return kBadStatus;
  }
  const Statuses after = use(cache);
  if (after.verdict != kHeld) return after.verdict;
  return after.served() ? kHeld : kNoService;
}

std::string fresh_folder(const fs::path& parent) {
  std::string name = (parent / "cache-XXXXXX").string();
  return ::mkdtemp(name.data()) == nullptr ? std::string() : name;
}

/// The exit status of a child that runs `body`; minus the signal that ended it.
template <class Body>
int in_child(Body body) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(body());
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

/// How many allocations one use makes.
std::uint64_t count_allocations(const std::string& cache) {
  int ends[2];
  if (::pipe(ends) != 0) return 0;
  in_child([&] {
    broach::test::fail_allocations(Failing::kNothing, 0);
    const bool served = use(cache).served();
    const std::uint64_t seen = served ? broach::test::allocations_seen() : 0;
    return ::write(ends[1], &seen, sizeof seen) == sizeof seen ? 0 : 1;
  });
  std::uint64_t seen = 0;
  ::close(ends[1]);
  if (::read(ends[0], &seen, sizeof seen) != sizeof seen) seen = 0;
  ::close(ends[0]);
  return seen;
}

int sweep(const fs::path& folder, std::string_view scene, Failing which, std::uint64_t stride,
          std::uint64_t first) {
  const bool is_cold = scene != "warm";
  if (scene == "background") first_use = BROACH_FIRST_USE_BACKGROUND;
  const std::string warm = fresh_folder(folder);
  if (in_child([&] { return use(warm).served() ? 0 : 1; }) != 0) {
    std::fprintf(stderr, "without a failure it is not served\n");
    return 1;
  }
  const std::uint64_t total = count_allocations(is_cold ? fresh_folder(folder) : warm);
  int failures = 0;
  std::uint64_t tried = 0;
  for (std::uint64_t n = first; n <= total; n += stride) {
    const std::string cache = is_cold ? fresh_folder(folder) : warm;
    const int ended = in_child([&] { return try_one(cache, which, n); });
    ++tried;
    if (ended != kHeld) {
      ++failures;
      std::fprintf(stderr, "%s: allocation %llu: %s %d\n", std::string(scene).c_str(),
                   static_cast<unsigned long long>(n), ended < 0 ? "signal" : "verdict",
                   std::abs(ended));
    }
    if (is_cold) fs::remove_all(cache);
  }
  std::printf("%s: %llu allocations, %llu tried, %d do not hold\n", std::string(scene).c_str(),
              static_cast<unsigned long long>(total), static_cast<unsigned long long>(tried),
              failures);
  return total == 0 || failures > 0 ? 1 : 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) {
    std::fprintf(stderr, "usage: %s cold|warm|background nth|all STRIDE [FIRST]\n", argv[0]);
    return 2;
  }
  const Failing which = std::string_view(argv[2]) == "all" ? Failing::kFromNth : Failing::kNth;
  const std::uint64_t stride = std::strtoull(argv[3], nullptr, 10);
  const std::uint64_t first = argc > 4 ? std::strtoull(argv[4], nullptr, 10) : 1;
  std::string folder = (fs::temp_directory_path() / "broach-sweep-XXXXXX").string();
  if (stride == 0 || ::mkdtemp(folder.data()) == nullptr) return 2;
  worker = (fs::read_symlink("/proc/self/exe").parent_path() / "broach-rtc").string();
  write_compiler(folder);
  ::setenv("BROACH_CXX", compiler.c_str(), 1);
  const int status = sweep(folder, argv[1], which, stride, first);
  fs::remove_all(folder);
  return status;
}
