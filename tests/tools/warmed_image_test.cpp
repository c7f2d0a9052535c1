// An image that was warmed serves when nothing else works.
#include <grp.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/catch.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/tools/program.hpp"

using namespace broach::test;

namespace {

namespace fs = std::filesystem;

constexpr uid_t kUser = 23456;

const std::vector<std::string> kDecode{"run",
                                       "window_rows",
                                       "head_dim=64",
                                       "gqa_ratio=2",
                                       "window=40",
                                       "kv_layout=ring(130)",
                                       "arith=chunk256",
                                       "--target",
                                       "host",
                                       "--rows",
                                       "1",
                                       "--kv-heads",
                                       "1",
                                       "--launches",
                                       "1",
                                       "--json"};

void open_to_everyone(const fs::path& top) {
  REQUIRE(chmod(top.c_str(), 0755) == 0);
  for (const auto& part : fs::recursive_directory_iterator(top)) {
    REQUIRE(chmod(part.path().c_str(), part.is_directory() ? 0755 : 0644) == 0);
  }
}

/// One shape in a directory, and the same in a signed bundle, as root leaves them in an image.
struct Image {
  Image() {
    fs::permissions(dir.path(), fs::perms(0755));
    const Program root(dir.path());
    std::vector<std::string> first = kDecode;
    first.insert(first.end(), {"--cache-dir", layer.string()});
    made = root.run(first);
    if (made.status != 0) return;
    const std::string key = (dir.path() / "key").string();
    REQUIRE(root.run({"key", "generate", key, "--name", "image"}).status == 0);
    REQUIRE(
        root.run({"export", "--cache-dir", layer.string(), "--sign", key, "-o", bundle.string()})
            .status == 0);
    fs::create_directory(keys);
    fs::copy_file(key + ".pub", keys / "image.pub");
    open_to_everyone(layer);
    open_to_everyone(keys);
    fs::permissions(bundle, fs::perms(0644));
  }

  TempDir dir;
  fs::path layer = dir.path() / "kernels";
  fs::path bundle = dir.path() / "kernels.broach";
  fs::path keys = dir.path() / "keys";
  Ended made;
};

bool limit(__rlimit_resource what, rlim_t to) {
  const rlimit bounds{to, to};
  return setrlimit(what, &bounds) == 0;
}

bool only_read(const char* place) {
  return mount(nullptr, place, nullptr, MS_REMOUNT | MS_BIND | MS_RDONLY, nullptr) == 0;
}

bool become_user() {
  return setgroups(0, nullptr) == 0 && setresgid(kUser, kUser, kUser) == 0 &&
         setresuid(kUser, kUser, kUser) == 0;
}

/// What is wrong with the machine: its environment, what root takes away, what the user has left.
struct Trouble {
  const char* name;
  std::vector<std::pair<std::string, std::string>> environment;
  std::function<bool()> as_root;
  std::function<bool()> as_the_user;
};

const std::vector<Trouble>& troubles() {
  static const auto fine = [] { return true; };
  static const std::vector<Trouble> all = {
      {"a home that is not there", {}, fine, fine},
      {"no compiler", {{"PATH", "/nonexistent"}}, fine, fine},
      {"a worker that does not start", {{"BROACH_WORKER", "/bin/false"}}, fine, fine},
      {"no worker", {{"BROACH_WORKER", "/nonexistent"}}, fine, fine},
      {"few descriptors", {}, fine, [] { return limit(RLIMIT_NOFILE, 20); }},
      // The one that runs is the user's own: no thread and no process beside it.
      {"no thread and no process", {}, fine, [] { return limit(RLIMIT_NPROC, 1); }},
      {"a file system that is only read, /tmp and /dev/shm too",
       {},
       [] {
         if (unshare(CLONE_NEWNS) != 0 ||
             mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 || !only_read("/")) {
           return false;
         }
         for (const char* place : {"/tmp", "/var/tmp", "/dev/shm"}) (void)only_read(place);
         return access("/tmp", W_OK) != 0;
       },
       fine},
  };
  return all;
}

/// Decodes from a layer of the image's as another user, under each way of first use.
void check_served(const Image& image, const fs::path& layer, const Trouble& trouble) {
  for (const char* first_use : {"wait", "background", "never"}) {
    INFO(trouble.name << ", " << layer.filename() << ", " << first_use);
    Program engine("/nonexistent");
    engine.set("BROACH_CACHE_PATH", layer.string());
    engine.set("BROACH_TRUSTED_KEYS", image.keys.string());
    engine.set("BROACH_FIRST_USE", first_use);
    for (const auto& [name, value] : trouble.environment) engine.set(name, value);
    engine.prepare([&] { return trouble.as_root() && become_user() && trouble.as_the_user(); });
    const Ended ended = engine.run(kDecode);
    CAPTURE(ended.out, ended.err);
    if (ended.status == Program::kCannotPrepare) BROACH_SKIP("this machine cannot be so poor");
    CHECK(ended.status == 0);
    CHECK(ended.out.find("\"compiled\":false") != std::string::npos);
  }
}

}  // namespace

TEST_CASE("a warmed image serves where neither a process nor a thread can be started",
          "[tools][image]") {
  if (geteuid() != 0) BROACH_SKIP("taking things away from a user needs root");
  const Image image;
  if (image.made.status != 0) BROACH_SKIP("no host compiler: " + image.made.err);
  for (const Trouble& trouble : troubles()) {
    if (std::string_view(trouble.name) != "no thread and no process") continue;
    check_served(image, image.layer, trouble);
    // What is not there cannot be made so, and is refused by name.
    Program engine("/nonexistent");
    engine.set("BROACH_FIRST_USE", "wait");
    engine.prepare([&] { return become_user() && trouble.as_the_user(); });
    const Ended refused = engine.run(kDecode);
    CAPTURE(refused.err);
    CHECK(refused.status == 4);
    CHECK(refused.err.find("Resource temporarily unavailable") != std::string::npos);
  }
}

TEST_CASE("a warmed layer or bundle serves whatever else the machine lacks",
          "[tools][image][slow]") {
  if (geteuid() != 0) BROACH_SKIP("taking things away from a user needs root");
  const Image image;
  if (image.made.status != 0) BROACH_SKIP("no host compiler: " + image.made.err);
  for (const Trouble& trouble : troubles()) {
    check_served(image, image.layer, trouble);
    check_served(image, image.bundle, trouble);
  }
}
