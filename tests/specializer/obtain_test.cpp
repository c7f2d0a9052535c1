#include "specializer/obtain.hpp"

#include "specializer/window_rows/shape.hpp"
#include "tests/specializer/data_files.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/temp_dir.hpp"

namespace broach::specializer {
namespace {

constexpr std::int64_t kStartMs = 1'800'000'000'000;

Plan cubin_plan() {
  Plan plan;
  plan.family = "window_rows";
  plan.target = *parse_target("sm_90a");
  WindowRowsShape shape;
  shape.head_dim = 256;
  shape.gqa_ratio = 2;
  plan.shape_json = to_json(shape);
  plan.parameters = parameters(shape);
  plan.sources = {{"main.cu", "// source\n"}};
  plan.options = {"--std=c++20"};
  plan.entries = {{"bounds96", 96, 0}, {"spill", 256, 0}};
  return plan;
}

// Compilers that do what a test tells them, and count.
struct FakeCompilers {
  CompilerIdentity found{
      CompilerKind::kNvrtc, "nvrtc 13.0 build 1", "NVRTC 13.0.88 (build 1)", "", {13, 0}};
  CompilerIdentity compiles_as = found;
  std::optional<Error> missing, fails;
  std::vector<std::byte> binary = test::read_bytes(test::data_path("limits_sm_90a.cubin"));
  std::int64_t now_ms = kStartMs;
  int compiles = 0;
  std::vector<std::string> symbols;

  ObtainSteps steps() {
    return {[this](const Target&) -> Result<CompilerIdentity> {
              if (missing) return *missing;
              return found;
            },
            [this](const Plan&) -> Result<CompileOutput> {
              ++compiles;
              if (fails) return *fails;
              return CompileOutput{binary, "the log", 7, compiles_as, symbols};
            },
            [this] { return now_ms; }};
  }
};

std::unique_ptr<cache::Cache> open_cache(const std::filesystem::path& directory = {}) {
  cache::CacheOptions options;
  if (!directory.empty()) options.directories = {directory};
  options.notice = [](std::string_view) {};
  return cache::Cache::open(options);
}

bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("an object has its plan's entries under the names that the compiler gave them",
          "[specializer][forge]") {
  FakeCompilers fake;
  fake.symbols = {"bounds96", "spill"};
  const auto cache = open_cache();
  Plan plan = cubin_plan();
  plan.entries[0].function = "first";
  plan.entries[0].expression = "bounds<96>";
  plan.entries[1].function = "second";
  plan.entries[1].expression = "spill";
  REQUIRE(obtain(*cache, fake.steps(), plan, OnMiss::kCompile));
  // Without a compiler too.
  fake.missing = Error{ErrorCode::kCompilerMissing, "none", ""};
  const auto again = obtain(*cache, fake.steps(), plan, OnMiss::kRefuse);
  REQUIRE(again);
  CHECK(fake.compiles == 1);
  const cache::Object& object = *again->object;
  REQUIRE(object.limits.size() == 2);
  CHECK(object.limits[0].function == "bounds96");
  CHECK(object.limits[1].function == "spill");
  CHECK(object.limits[1].spill_bytes == 744);

  plan.entries[1].expression = "spill<2>";
  CHECK_FALSE(obtain(*cache, fake.steps(), plan, OnMiss::kRefuse));
}

TEST_CASE("a plan is compiled once, and published with its limits and provenance",
          "[specializer][forge]") {
  FakeCompilers fake;
  const auto cache = open_cache();
  const Plan plan = cubin_plan();
  const auto first = obtain(*cache, fake.steps(), plan, OnMiss::kCompile);
  REQUIRE(first);
  CHECK(first->compiled);
  const cache::Object& object = *first->object;
  CHECK(object.key == key_of(plan, "nvrtc 13.0 build 1"));
  CHECK(object.description.target == "sm_90a");
  CHECK(object.description.shape_json == plan.shape_json);
  CHECK(object.description.source_hash == source_hash(plan));
  CHECK(object.description.compiler == "nvrtc 13.0 build 1");
  CHECK(object.description.kind == "cubin");
  CHECK(object.provenance.created_unix_ms == kStartMs);
  CHECK(object.provenance.compile_ms == 7);
  CHECK(object.provenance.toolkit == "NVRTC 13.0.88 (build 1)");
  CHECK(object.provenance.least_driver == "CUDA 13.0");
  CHECK(object.provenance.log == "the log");
  CHECK_FALSE(object.provenance.broach_version.empty());
  REQUIRE(object.limits.size() == 2);
  CHECK(object.limits[0].function == "bounds96");
  CHECK(object.limits[1].spill_bytes == 744);
  CHECK(object.payload == fake.binary);

  const auto second = obtain(*cache, fake.steps(), plan, OnMiss::kCompile);
  REQUIRE(second);
  CHECK_FALSE(second->compiled);
  CHECK(second->layer.kind == cache::LayerKind::kMemory);
  CHECK(fake.compiles == 1);
}

TEST_CASE("a refused miss names shape, target and way out, and is in the journal",
          "[specializer][forge]") {
  FakeCompilers fake;
  const auto cache = open_cache();
  const Plan plan = cubin_plan();
  const auto refused = obtain(*cache, fake.steps(), plan, OnMiss::kRefuse);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::kNotWarmed);
  for (const char* part : {"window_rows head_dim=256 gqa_ratio=2", "sm_90a", "NVRTC 13.0.88",
                           "broach warm --from-journal --target sm_90a"}) {
    CHECK(has(refused.error().message, part));
  }
  CHECK(fake.compiles == 0);
  const auto journal = cache->journal();
  REQUIRE(journal);
  REQUIRE(journal->size() == 1);
  CHECK(journal->front().shape_json == plan.shape_json);
  CHECK(journal->front().target == "sm_90a");

  REQUIRE(obtain(*cache, fake.steps(), plan, OnMiss::kCompile));
  CHECK(obtain(*cache, fake.steps(), plan, OnMiss::kRefuse));
}

TEST_CASE("a rejected compile is remembered for its compiler, and reported as that",
          "[specializer][forge]") {
  FakeCompilers fake;
  const auto cache = open_cache();
  const Plan plan = cubin_plan();
  fake.fails = Error{ErrorCode::kCompileFailed, "NVRTC rejected main.cu", "main.cu(3): error"};
  const auto first = obtain(*cache, fake.steps(), plan, OnMiss::kCompile);
  REQUIRE_FALSE(first);
  CHECK(first.error().message == "NVRTC rejected main.cu");
  const auto second = obtain(*cache, fake.steps(), plan, OnMiss::kCompile);
  REQUIRE_FALSE(second);
  CHECK(fake.compiles == 1);
  CHECK(second.error().code == ErrorCode::kCompileFailed);
  CHECK(has(second.error().message, "NVRTC rejected main.cu"));
  CHECK(has(second.error().message, "remembered"));
  CHECK(second.error().detail == "main.cu(3): error");

  // Another compiler has another key: it is asked at once.
  fake.found.key_text = fake.compiles_as.key_text = "nvrtc 13.1 build 2";
  fake.fails.reset();
  CHECK(obtain(*cache, fake.steps(), plan, OnMiss::kCompile));
  CHECK(fake.compiles == 2);
}

TEST_CASE("a missing compiler is no remembered failure", "[specializer][forge]") {
  FakeCompilers fake;
  const auto cache = open_cache();
  fake.missing = Error{ErrorCode::kCompilerMissing, "no NVRTC", "tried: a, b"};
  const auto first = obtain(*cache, fake.steps(), cubin_plan(), OnMiss::kCompile);
  REQUIRE_FALSE(first);
  CHECK(first.error().code == ErrorCode::kCompilerMissing);
  const auto refused = obtain(*cache, fake.steps(), cubin_plan(), OnMiss::kRefuse);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::kNotWarmed);
  fake.missing.reset();
  CHECK(obtain(*cache, fake.steps(), cubin_plan(), OnMiss::kCompile));
}

TEST_CASE("a warmed cache serves where no compiler is installed", "[specializer][forge]") {
  const test::TempDir dir;
  FakeCompilers fake;
  REQUIRE(obtain(*open_cache(dir.path()), fake.steps(), cubin_plan(), OnMiss::kCompile));

  fake.missing = Error{ErrorCode::kCompilerMissing, "no NVRTC", ""};
  const auto cache = open_cache(dir.path());
  for (const OnMiss on_miss : {OnMiss::kCompile, OnMiss::kRefuse}) {
    const auto served = obtain(*cache, fake.steps(), cubin_plan(), on_miss);
    REQUIRE(served);
    CHECK_FALSE(served->compiled);
    CHECK(served->object->description.compiler == "nvrtc 13.0 build 1");
  }
  // Everything but the compiler must be the same.
  Plan other = cubin_plan();
  SECTION("another option") { other.options.push_back("--ftz=true"); }
  SECTION("another source") { other.sources[0].bytes.push_back(' '); }
  SECTION("another parameter") { other.parameters[0].value = "128"; }
  SECTION("another target") { other.target = *parse_target("sm_100a"); }
  const auto missed = obtain(*cache, fake.steps(), other, OnMiss::kCompile);
  REQUIRE_FALSE(missed);
  CHECK(missed.error().code == ErrorCode::kCompilerMissing);
}

TEST_CASE("a warmed cache serves whatever keeps a compiler from saying who it is",
          "[specializer][forge]") {
  const test::TempDir dir;
  FakeCompilers fake;
  REQUIRE(obtain(*open_cache(dir.path()), fake.steps(), cubin_plan(), OnMiss::kCompile));
  // No process, no descriptor or scratch, no memory, a worker that dies, hangs or makes no sense.
  for (const ErrorCode code : {ErrorCode::kIo, ErrorCode::kOutOfMemory, ErrorCode::kCompilerDied,
                               ErrorCode::kTimedOut, ErrorCode::kDenied, ErrorCode::kInternal}) {
    fake.missing = Error{code, "the machine is in trouble", "EAGAIN"};
    const auto cache = open_cache(dir.path());
    for (const OnMiss on_miss : {OnMiss::kCompile, OnMiss::kRefuse}) {
      const auto served = obtain(*cache, fake.steps(), cubin_plan(), on_miss);
      REQUIRE(served);
      CHECK_FALSE(served->compiled);
    }
    // What is not there is refused with the trouble itself.
    Plan other = cubin_plan();
    other.options.push_back("--ftz=true");
    CHECK(obtain(*cache, fake.steps(), other, OnMiss::kCompile).error().code == code);
  }
}

TEST_CASE("a binary of a compiler that was replaced meanwhile is never under the old key",
          "[specializer][forge]") {
  FakeCompilers fake;
  const auto cache = open_cache();
  const Plan plan = cubin_plan();
  fake.compiles_as.key_text = "nvrtc 13.1 build 2";
  fake.compiles_as.words = "NVRTC 13.1.5 (build 2)";
  const auto served = obtain(*cache, fake.steps(), plan, OnMiss::kCompile);
  REQUIRE(served);
  CHECK(served->compiled);
  CHECK(served->object->key == key_of(plan, "nvrtc 13.1 build 2"));
  CHECK(served->object->description.compiler == "nvrtc 13.1 build 2");
  CHECK_FALSE(cache->find(key_of(plan, "nvrtc 13.0 build 1")));
  CHECK(cache->find(key_of(plan, "nvrtc 13.1 build 2")));
  CHECK_FALSE(cache->failure(key_of(plan, "nvrtc 13.0 build 1").key));
}

TEST_CASE("a binary that does not read is an error with the log, and is not published",
          "[specializer][forge]") {
  FakeCompilers fake;
  const auto cache = open_cache();
  fake.binary.resize(100);
  const auto made = obtain(*cache, fake.steps(), cubin_plan(), OnMiss::kCompile);
  REQUIRE_FALSE(made);
  CHECK(made.error().code == ErrorCode::kDamaged);
  CHECK(has(made.error().message, "NVRTC 13.0.88 (build 1) made a binary for sm_90a"));
  CHECK(made.error().detail == "the log");
  CHECK_FALSE(cache->find(key_of(cubin_plan(), fake.found.key_text)));
  CHECK_FALSE(cache->failure(key_of(cubin_plan(), fake.found.key_text).key));
}

TEST_CASE("the least driver is the toolkit's or the chip's, whichever is later",
          "[specializer][forge]") {
  const CompilerIdentity nvrtc13{CompilerKind::kNvrtc, "", "", "", {13, 2}};
  const CompilerIdentity nvrtc12{CompilerKind::kNvrtc, "", "", "", {12, 9}};
  CHECK(least_driver(*parse_target("sm_90a"), nvrtc13) == Version{13, 0});
  CHECK(least_driver(*parse_target("sm_90a"), nvrtc12) == Version{12, 0});
  CHECK(least_driver(*parse_target("sm_121a"), nvrtc12) == Version{12, 9});
  CHECK(least_driver(*parse_target("sm_80"), nvrtc12) == Version{12, 0});
  CHECK_FALSE(least_driver(*parse_target("gfx90a"), nvrtc13).stated());
  CHECK_FALSE(least_driver(*parse_target("host"), nvrtc13).stated());
}

}  // namespace broach::specializer
