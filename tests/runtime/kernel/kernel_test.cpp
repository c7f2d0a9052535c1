#include "broach/kernel.hpp"

#include <array>
#include <future>
#include <string>
#include <vector>

#include "tests/runtime/fixture.hpp"
#include "tests/support/catch.hpp"

namespace broach {
namespace {

using test::options_in;

constexpr std::string_view kText = R"({
  "family": 1, "name": "acme.scale",
  "parameters": [{"name": "factor", "type": "int", "range": [1, 100], "constant": "kFactor"}],
  "sources": ["scale.cuh"],
  "functions": ["acme_scale"],
  "targets": ["host"]
})";

constexpr char kSource[] = R"(
#include "broach/kernel.cuh"
struct Params { int* x; int count; };
BROACH_KERNEL(acme_scale, 64, Params, broach::NoShared) {
  const int i = static_cast<int>(thread.block_x() * 64 + thread.index());
  if (i < params.count) params.x[i] *= kFactor;
}
)";

struct Params {
  int* x;
  int count;
};

KernelFamily scale(std::string source = kSource) {
  auto family = KernelFamily::from(kText, {{"scale.cuh", std::move(source)}});
  if (!family) FAIL(family.error().message);
  return *std::move(family);
}

KernelShape by(const KernelFamily& family, int factor) {
  auto shape = family.shape({"factor=" + std::to_string(factor)});
  if (!shape) FAIL(shape.error().message);
  return *std::move(shape);
}

bool says(const Error& error, std::string_view part) {
  return error.message.find(part) != std::string::npos;
}

Result<void> launch(const Kernel& kernel, std::vector<int>& values) {
  const Params params{values.data(), static_cast<int>(values.size())};
  const auto blocks = static_cast<std::uint32_t>((values.size() + 63) / 64);
  return kernel.launch("acme_scale", {.grid = {blocks, 1, 1}}, arguments(params));
}

}  // namespace

TEST_CASE("a kernel of an engine's family is compiled for its shape and launched", "[kernel]") {
  const test::TempDir dir;
  auto runtime = Runtime::create(options_in(dir));
  REQUIRE(runtime);
  const KernelFamily family = scale();
  const auto three = runtime->kernel(by(family, 3));
  REQUIRE(three);
  const auto seven = runtime->kernel(by(family, 7));
  REQUIRE(seven);
  std::vector<int> values(100, 2);
  REQUIRE(launch(*three, values));
  REQUIRE(launch(*seven, values));
  CHECK(values == std::vector<int>(100, 42));

  const KernelInfo info = three->info();
  CHECK(info.key.size() == 32);
  CHECK(info.key != seven->info().key);
  CHECK(info.compiled);
  CHECK_FALSE(info.generic);
  REQUIRE(info.limits.size() == 1);
  CHECK(info.limits[0].function == "acme_scale");
  CHECK(info.limits[0].launch_bounds == 64);

  // The same contents are the same family, whoever made it.
  const auto again = runtime->kernel(by(scale(), 3));
  REQUIRE(again);
  CHECK(again->info().key == info.key);
  const auto other = runtime->kernel(by(scale(std::string(kSource) + "// other\n"), 3));
  REQUIRE(other);
  CHECK(other->info().key != info.key);
}

TEST_CASE("a launch of an engine's kernel is checked by name", "[kernel]") {
  const test::TempDir dir;
  auto runtime = Runtime::create(options_in(dir));
  REQUIRE(runtime);
  const auto kernel = runtime->kernel(by(scale(), 3));
  REQUIRE(kernel);
  const Params params{nullptr, 0};
  const auto none = kernel->launch("nosuch", {}, arguments(params));
  REQUIRE_FALSE(none);
  CHECK(none.error().code == ErrorCode::kNotFound);
  CHECK(says(none.error(), "it has acme_scale"));
  CHECK_FALSE(kernel->launch("acme_scale", {}, arguments(params, params)));
  CHECK_FALSE(kernel->launch("acme_scale", {}, arguments(1)));
  CHECK_FALSE(kernel->launch("acme_scale", {.grid = {0, 1, 1}}, arguments(params)));
  CHECK_FALSE(kernel->launch("acme_scale", {.block = {128, 1, 1}}, arguments(params)));
  CHECK_FALSE(kernel->launch("acme_scale", {.cluster = {2, 1, 1}}, arguments(params)));
  const std::vector<KernelArgument> many(1000);
  CHECK_FALSE(kernel->launch("acme_scale", {}, many));
  CHECK(kernel->launch("acme_scale", {}, arguments(params)));
}

TEST_CASE("a block that no source states is the family file's, or the launch's", "[kernel]") {
  const test::TempDir dir;
  auto runtime = Runtime::create(options_in(dir));
  REQUIRE(runtime);
  std::string source(kSource);
  source.replace(source.find("BROACH_KERNEL"), 13, "BROACH_GLOBAL");
  const Params params{nullptr, 0};
  const auto unstated = runtime->kernel(by(scale(source), 3));
  REQUIRE(unstated);
  CHECK_FALSE(unstated->launch("acme_scale", {}, arguments(params)));
  CHECK(unstated->launch("acme_scale", {.block = {64, 1, 1}}, arguments(params)));
  std::string text(kText);
  text.replace(text.find("[\"acme_scale\"]"), 14, "[{\"name\": \"acme_scale\", \"block\": 64}]");
  const auto family = KernelFamily::from(text, {{"scale.cuh", source}});
  REQUIRE(family);
  const auto described = runtime->kernel(by(*family, 3));
  REQUIRE(described);
  CHECK(described->launch("acme_scale", {}, arguments(params)));
}

TEST_CASE("a warmed cache serves an engine's kernels to another process under never", "[kernel]") {
  const test::TempDir dir;
  Options never = options_in(dir);
  never.first_use = FirstUse::kNever;
  {
    auto runtime = Runtime::create(never);
    REQUIRE(runtime);
    const auto cold = runtime->kernel(by(scale(), 5));
    REQUIRE_FALSE(cold);
    CHECK(cold.error().code == ErrorCode::kNotWarmed);
  }
  {
    auto runtime = Runtime::create(options_in(dir));
    REQUIRE(runtime);
    REQUIRE(runtime->kernel(by(scale(), 5)));
  }
  auto runtime = Runtime::create(never);
  REQUIRE(runtime);
  const auto warm = runtime->kernel(by(scale(), 5));
  REQUIRE(warm);
  CHECK_FALSE(warm->info().compiled);
  std::vector<int> values(3, 2);
  REQUIRE(launch(*warm, values));
  CHECK(values == std::vector<int>(3, 10));
}

TEST_CASE("a kernel that is on its way is asked for without waiting", "[kernel]") {
  const test::TempDir dir;
  const auto first_use = GENERATE(FirstUse::kWait, FirstUse::kBackground);
  Options options = options_in(dir);
  options.first_use = first_use;
  auto runtime = Runtime::create(options);
  REQUIRE(runtime);
  const KernelFamily family = scale();
  const auto begun = runtime->try_kernel(by(family, 9));
  REQUIRE(begun);
  CHECK_FALSE(begun->has_value());
  if (first_use == FirstUse::kBackground) {
    const auto pending = runtime->kernel(by(family, 11));
    REQUIRE_FALSE(pending);
    CHECK(pending.error().reason == Reason::kPending);
  }
  runtime->wait_for_background();
  const auto there = runtime->try_kernel(by(family, 9));
  REQUIRE(there);
  REQUIRE(there->has_value());
  std::vector<int> values(3, 2);
  REQUIRE(launch(**there, values));
  CHECK(values == std::vector<int>(3, 18));
  CHECK(runtime->kernel(by(family, 11)));

  // Why there is none is said once, and the next call begins again.
  const KernelShape broken = by(scale("#error nothing works\n"), 9);
  const auto unbroken = runtime->try_kernel(broken);
  REQUIRE(unbroken);
  runtime->wait_for_background();
  const auto failed = runtime->try_kernel(broken);
  REQUIRE_FALSE(failed);
  CHECK(failed.error().code == ErrorCode::kCompileFailed);
  CHECK(failed.error().detail.find("nothing works") != std::string::npos);
  const auto anew = runtime->try_kernel(broken);
  REQUIRE(anew);
  CHECK_FALSE(anew->has_value());
  runtime->wait_for_background();
}

TEST_CASE("many kernels are prepared at once, and those that fail are named", "[kernel]") {
  const test::TempDir dir;
  auto runtime = Runtime::create(options_in(dir));
  REQUIRE(runtime);
  const KernelFamily family = scale();
  std::vector<KernelShape> shapes;
  for (const int factor : {2, 3, 4, 5}) shapes.push_back(by(family, factor));
  shapes.push_back(by(scale("#error nothing works\n"), 1));
  std::size_t calls = 0;
  std::size_t faults = 0;
  std::size_t last = 0;
  const auto failed = runtime->prepare(shapes, {.jobs = 3, .progress = [&](const auto& at) {
                                                  ++calls;
                                                  faults += at.fault != nullptr ? 1U : 0U;
                                                  CHECK(at.total == 5);
                                                  CHECK(at.done == last + 1);
                                                  last = at.done;
                                                }});
  CHECK(calls == 5);
  CHECK(faults == 1);
  REQUIRE(failed.size() == 1);
  CHECK(failed[0].shape == "acme.scale factor=1");
  CHECK(failed[0].error.code == ErrorCode::kCompileFailed);
  for (const int factor : {2, 3, 4, 5}) {
    const auto ready = runtime->try_kernel(by(family, factor));
    REQUIRE(ready);
    CHECK(ready->has_value());
  }
  CHECK(runtime->prepare({}).empty());
}

TEST_CASE("a source and a function's name are all that compile needs", "[kernel]") {
  const test::TempDir dir;
  auto runtime = Runtime::create(options_in(dir));
  REQUIRE(runtime);
  const std::string source = "constexpr int kFactor = 4;\n" + std::string(kSource);
  const auto kernel = runtime->compile("acme_scale", source);
  REQUIRE(kernel);
  std::vector<int> values(3, 2);
  REQUIRE(launch(*kernel, values));
  CHECK(values == std::vector<int>(3, 8));
  const auto same = runtime->compile("acme_scale", source);
  REQUIRE(same);
  CHECK(same->info().key == kernel->info().key);
  const auto other =
      runtime->compile("acme_scale", "constexpr int kFactor = 6;\n" + std::string(kSource));
  REQUIRE(other);
  CHECK(other->info().key != kernel->info().key);
  CHECK_FALSE(runtime->compile("acme scale", source));
}

TEST_CASE("threads that ask for one kernel at once share a build", "[kernel]") {
  const test::TempDir dir;
  auto runtime = Runtime::create(options_in(dir));
  REQUIRE(runtime);
  const KernelFamily family = scale();
  std::vector<std::future<std::string>> keys;
  for (int i = 0; i < 8; ++i) {
    keys.push_back(std::async(std::launch::async, [&] {
      const auto kernel = runtime->kernel(by(family, 13));
      return kernel ? kernel->info().key : kernel.error().message;
    }));
  }
  const std::string first = keys[0].get();
  CHECK(first.size() == 32);
  for (std::size_t i = 1; i < keys.size(); ++i) CHECK(keys[i].get() == first);
}

}  // namespace broach
