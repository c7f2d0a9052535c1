#include "specializer/plan.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <locale>

#include "tests/support/catch.hpp"
#include "tests/support/window_rows_shape.hpp"

namespace broach::specializer {
namespace {

using test::parse_window_rows;
using test::resolved;

Target target_of(std::string_view name) { return *parse_target(name); }

WindowRowsShape shape_of(std::vector<std::string> words = {}) {
  std::vector<std::string> all{"head_dim=256", "gqa_ratio=2"};
  if (std::none_of(words.begin(), words.end(),
                   [](const std::string& word) { return word.starts_with("window="); })) {
    all.insert(all.end(), {"window=1024", "kv_layout=ring(1536)"});
  }
  for (std::string& word : words) {
    std::erase_if(all, [&](const std::string& each) {
      return each.substr(0, each.find('=')) == word.substr(0, word.find('='));
    });
    all.push_back(std::move(word));
  }
  return *parse_window_rows(all);
}

std::string key_now(std::string_view target = "sm_90a") {
  const auto made = plan(shape_of(), target_of(target));
  return made ? key_of(*made, "nvrtc 13.0").key.hex() : made.error().message;
}

// Runs `prepare` in a child process and returns the key that the child computes afterwards.
std::string key_in_child(const std::function<bool()>& prepare) {
  int ends[2];
  if (pipe(ends) != 0) return "pipe failed";
  const pid_t child = fork();
  if (child == 0) {
    close(ends[0]);
    const std::string key = prepare() ? key_now() : "the child could not be prepared";
    const auto written = write(ends[1], key.data(), key.size());
    _exit(written == static_cast<ssize_t>(key.size()) ? 0 : 1);
  }
  close(ends[1]);
  std::string key;
  char buffer[256];
  for (ssize_t n = 0; (n = read(ends[0], buffer, sizeof buffer)) > 0;) {
    key.append(buffer, static_cast<std::size_t>(n));
  }
  close(ends[0]);
  waitpid(child, nullptr, 0);
  return key;
}

struct Grouped : std::numpunct<char> {
  char do_thousands_sep() const override { return '.'; }
  std::string do_grouping() const override { return "\3"; }
};

}  // namespace

TEST_CASE("a plan is complete: sources, options, entries and kind of its target",
          "[specializer][plan]") {
  struct Row {
    std::string target;
    ArtifactKind kind;
    std::string option;
  };
  const Row row = GENERATE(values<Row>({
      {"sm_90a", ArtifactKind::kCubin, "--gpu-architecture=sm_90a"},
      {"gfx90a:xnack-", ArtifactKind::kCodeObject, "--offload-arch=gfx90a:xnack-"},
      {"host-x86-64-v3", ArtifactKind::kHostSharedObject, "-march=x86-64-v3"},
  }));
  const auto made = plan(shape_of(), target_of(row.target));
  REQUIRE(made);
  CHECK(made->family == "window_rows");
  CHECK(made->target.name == row.target);
  CHECK(made->kind == row.kind);
  CHECK(std::count(made->options.begin(), made->options.end(), row.option) == 1);
  REQUIRE(made->sources.size() >= 2);
  CHECK(made->sources.front().name == "main.cu");
  CHECK(std::any_of(made->sources.begin(), made->sources.end(),
                    [](const SourceFile& file) { return file.name == "window_rows/params.h"; }));
  CHECK_FALSE(made->entries.empty());
  CHECK(made->shape_json == to_json(resolved(shape_of(), made->target)));
  for (const std::string& option : made->options) CHECK(option.find('/') == std::string::npos);
}

TEST_CASE("a plan spells contraction, flushing and division out for every vendor",
          "[specializer][plan]") {
  const auto has = [](const Plan& made, std::string_view option) {
    return std::count(made.options.begin(), made.options.end(), option) == 1;
  };
  for (const std::string_view name : known_targets()) {
    INFO(name);
    const auto made = plan(shape_of(), target_of(name));
    REQUIRE(made);
    if (made->target.vendor == Vendor::kNvidia) {
      CHECK(has(*made, "--fmad=false"));
      CHECK(has(*made, "--ftz=false"));
      CHECK(has(*made, "--prec-div=true"));
      CHECK(has(*made, "--no-source-include"));
    } else {
      CHECK(has(*made, "-ffp-contract=off"));
      CHECK(has(*made, "-fno-fast-math"));
    }
  }
}

TEST_CASE("a plan is refused as its shape is", "[specializer][plan]") {
  WindowRowsShape shape = shape_of();
  shape.head_dim = 100;
  const auto made = plan(shape, target_of("sm_90a"));
  REQUIRE_FALSE(made);
  CHECK(made.error().message == serve(shape, target_of("sm_90a")).error().message);
}

TEST_CASE("the default arithmetic and its name give one key", "[specializer][plan]") {
  const Target target = target_of("sm_90a");
  const auto by_default = plan(shape_of(), target);
  const auto by_name = plan(resolved(shape_of(), target), target);
  REQUIRE(by_default);
  REQUIRE(by_name);
  CHECK(key_of(*by_default, "c") == key_of(*by_name, "c"));
}

TEST_CASE("every parameter of the shape changes the key", "[specializer][plan]") {
  const Target target = target_of("sm_90a");
  const auto base = plan(shape_of(), target);
  REQUIRE(base);
  // Parameters that have a second value with a kernel; the others are not served.
  const std::vector<std::vector<std::string>> changes{
      {"head_dim=128"}, {"gqa_ratio=3"},      {"window=1023"},
      {"dtype=f16"},    {"softcap=on"},       {"sinks=on"},
      {"checked=on"},   {"kv_layout=linear"}, {"kv_layout=ring(1537)"}};
  for (const auto& change : changes) {
    INFO(change.front());
    const auto other = plan(shape_of(change), target);
    REQUIRE(other);
    CHECK(key_of(*other, "c").key != key_of(*base, "c").key);
  }
}

TEST_CASE("a planted fault and a generic kernel have keys of their own", "[specializer][plan]") {
  const Target target = target_of("sm_90a");
  const auto base = plan(shape_of(), target);
  const auto control = plan(shape_of(), target, {"window_early", Switch::kOff});
  const auto generic = plan(shape_of(), target, {"", Switch::kOn});
  REQUIRE(base);
  REQUIRE(control);
  REQUIRE(generic);
  CHECK(key_of(*base, "c").key != key_of(*control, "c").key);
  CHECK(key_of(*base, "c").key != key_of(*generic, "c").key);
  CHECK(key_of(*control, "c").key != key_of(*generic, "c").key);
}

TEST_CASE("a planted fault that the kernel does not have is refused by name",
          "[specializer][plan]") {
  const auto made = plan(shape_of(), target_of("sm_90a"), {"no_such_fault", Switch::kOff});
  REQUIRE_FALSE(made);
  CHECK(made.error().code == ErrorCode::kUnsupported);
  CHECK(made.error().message.find("no_such_fault") != std::string::npos);
}

TEST_CASE("one generic plan serves every window, ratio and layout", "[specializer][plan]") {
  const Target target = target_of("sm_90a");
  const Variant generic{"", Switch::kOn};
  const auto base = plan(shape_of(), target, generic);
  REQUIRE(base);
  for (const std::vector<std::string>& change :
       std::vector<std::vector<std::string>>{{"gqa_ratio=3"},
                                             {"window=1023"},
                                             {"window=0", "kv_layout=linear"},
                                             {"kv_layout=ring(2048)"}}) {
    const auto other = plan(shape_of(change), target, generic);
    REQUIRE(other);
    CHECK(key_of(*other, "c") == key_of(*base, "c"));
    CHECK(other->shape_json == base->shape_json);
  }
  const auto wider = plan(shape_of({"head_dim=512"}), target, generic);
  REQUIRE(wider);
  CHECK(key_of(*wider, "c").key != key_of(*base, "c").key);
}

TEST_CASE("warpgroups multiply sm_90a's specialised tile64 prefills of whole panels, and no others",
          "[specializer][plan]") {
  const auto warpgroups_multiply = [](const Plan& made) {
    return std::any_of(made.sources.begin(), made.sources.end(),
                       [](const SourceFile& file) { return file.name == "tiles/wgmma.cuh"; });
  };
  struct Row {
    std::string target;
    std::string head_dim;
    std::uint32_t rows;  ///< Of a block; 64 where single warps multiply.
    std::uint32_t threads;
  };
  const Row row = GENERATE(values<Row>({
      // Consumer warpgroups and a producer's, up to 256 dims.
      {"sm_90a", "64", 192, 512},
      {"sm_90a", "128", 128, 384},
      {"sm_90a", "192", 128, 384},
      {"sm_90a", "256", 128, 384},
      {"sm_90a", "512", 64, 256},
      {"sm_90a", "80", 64, 128},
      {"sm_90a", "112", 64, 128},
      {"sm_80", "256", 64, 128},
      {"sm_100a", "128", 64, 128},
      {"host-x86-64-v3", "128", 64, 128},
  }));
  CAPTURE(row.target, row.head_dim);
  const bool expected = row.target == "sm_90a" && row.head_dim != "80" && row.head_dim != "112";
  const auto shape_with = [&](std::vector<std::string> words) {
    words.push_back("form=prefill");
    words.push_back("head_dim=" + row.head_dim);
    return shape_of(std::move(words));
  };
  const auto made = plan(shape_with({"p32=on"}), target_of(row.target));
  REQUIRE(made);
  CHECK(warpgroups_multiply(*made) == expected);
  REQUIRE(made->entries.size() == 1);
  CHECK(made->entries[0].block_rows == row.rows);
  CHECK(made->entries[0].block_threads == row.threads);
  CHECK(made->entries[0].dynamic_shared_bytes <= made->target.max_shared_bytes);

  const auto generic = plan(shape_with({}), target_of(row.target), {{}, Switch::kOn});
  REQUIRE(generic);
  CHECK_FALSE(warpgroups_multiply(*generic));
  CHECK(generic->entries[0].block_rows == 64);
  const auto mma32 = plan(shape_with({"arith=mma32"}), target_of(row.target));
  REQUIRE(mma32);
  CHECK_FALSE(warpgroups_multiply(*mma32));
}

TEST_CASE("features that change code are in the key", "[specializer][plan]") {
  std::vector<std::string> keys;
  for (const std::string_view name :
       {"gfx90a", "gfx90a:xnack-", "gfx90a:xnack+", "gfx90a:sramecc+:xnack+", "gfx942"}) {
    keys.push_back(key_now(name));
  }
  std::sort(keys.begin(), keys.end());
  CHECK(std::adjacent_find(keys.begin(), keys.end()) == keys.end());
  CHECK(key_now("gfx90a:sramecc+:xnack+") == key_now("gfx90a:xnack+:sramecc+"));
}

TEST_CASE("the same plan has the same key in any process, directory, user, locale and environment",
          "[specializer][plan][multiprocess]") {
  const std::string here = key_now();
  REQUIRE(here.size() == 32);
  CHECK(key_in_child([] { return true; }) == here);
  CHECK(key_in_child([] { return chdir("/") == 0; }) == here);
  CHECK(key_in_child([] {
          std::locale::global(std::locale(std::locale::classic(), new Grouped));
          return true;
        }) == here);
  CHECK(key_in_child([] {
          return setenv("HOME", "/nowhere", 1) == 0 && setenv("CPATH", "/tmp", 1) == 0 &&
                 setenv("LC_ALL", "de_DE.UTF-8", 1) == 0 && setenv("TZ", "Asia/Tokyo", 1) == 0 &&
                 std::setlocale(LC_ALL, "") != reinterpret_cast<const char*>(1);
        }) == here);
  if (geteuid() != 0) BROACH_SKIP("only root can become another user");
  CHECK(key_in_child([] { return setgid(65534) == 0 && setuid(65534) == 0; }) == here);
}

}  // namespace broach::specializer
