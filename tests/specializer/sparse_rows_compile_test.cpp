// sparse_rows for chips whose matrix unit has a form: what their binaries need to launch, as a
// cache records it.
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string_view>

#include "specializer/forge.hpp"
#include "specializer/sparse_rows/shape.hpp"
#include "tests/specializer/compile_support.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/temp_dir.hpp"

namespace broach::specializer {
namespace {

SparseRowsShape slice(SparseTile tile, std::uint32_t head_dim) {
  SparseRowsShape shape;
  shape.tile = tile;
  shape.head_dim = head_dim;
  shape.gqa_ratio = 12;
  shape.compress_ratio = 4;
  shape.q_dtype = QueryDtype::kF32;
  return shape;
}

}  // namespace

TEST_CASE("gfx1151's sparse mma keeps nothing in scratch, by the limits that are recorded",
          "[specializer][sparse_rows][compile]") {
  const char* named = std::getenv("BROACH_HIPRTC_PREFIX");
  CompilersOptions options = test::compilers_options();
  options.hiprtc_prefix = named != nullptr && *named != '\0' ? named : BROACH_TEST_HIPRTC_PREFIX;
  if (!std::filesystem::exists(options.hiprtc_prefix / "usr")) {
    BROACH_SKIP("no hiprtc prefix; tools/fetch-hiprtc makes one");
  }
  const test::TempDir dir;
  cache::CacheOptions kept;
  kept.directories = {dir.path()};
  kept.notice = [](std::string_view) {};
  Forge forge(cache::Cache::open(kept), std::make_shared<Compilers>(options));
  const Target target = *parse_target("gfx1151");
  for (const std::uint32_t head_dim : {64U, 256U}) {
    const auto planned = plan(slice(SparseTile::kMma, head_dim), target);
    INFO((planned ? "" : planned.error().message));
    REQUIRE(planned);
    const auto made = forge.obtain(*planned, OnMiss::kCompile);
    INFO((made ? "" : made.error().message + "\n" + made.error().detail));
    REQUIRE(made);
  }
  const auto recorded = forge.cache().limits();
  REQUIRE(recorded);
  REQUIRE(recorded->size() == 2);
  for (const cache::EntryLimits& entry : *recorded) {
    const LaunchLimits& limits = entry.limits;
    INFO(limits.function);
    CHECK(limits.function == "broach_sparse_rows_mma");
    REQUIRE(limits.vgprs);
    CHECK(*limits.vgprs > 0);
    REQUIRE(limits.spill_bytes);
    CHECK(*limits.spill_bytes == 0);
    REQUIRE(limits.vgpr_spills);
    CHECK(*limits.vgpr_spills == 0);
    CHECK(limits.stack_bytes.value_or(0) == 0);
  }
}

}  // namespace broach::specializer
