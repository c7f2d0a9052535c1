// Chips whose matrix unit lacks a family's steps: what is refused there, and what still is served.
#include <string>
#include <string_view>

#include "specializer/sage_exact/shape.hpp"
#include "specializer/sparse_rows/shape.hpp"
#include "tests/support/catch.hpp"

namespace broach::specializer {
namespace {

Target target_of(std::string_view name) {
  auto target = parse_target(name);
  REQUIRE(target);
  return *std::move(target);
}

SageExactShape sage(SageBoundary boundary) {
  SageExactShape shape;
  shape.boundary = boundary;
  return shape;
}

SparseRowsShape sparse(SparseTile tile) {
  SparseRowsShape shape;
  shape.head_dim = 64;
  shape.gqa_ratio = 2;
  shape.compress_ratio = 4;
  shape.tile = tile;
  return shape;
}

template <class TypedShape>
void check_refused(const TypedShape& shape, std::string_view target, std::string_view words) {
  INFO(target);
  const auto served = serve(shape, target_of(target));
  REQUIRE_FALSE(served);
  CHECK(served.error().code == ErrorCode::kUnsupported);
  CHECK(served.error().reason == Reason::kNoKernel);
  INFO(served.error().message);
  CHECK(served.error().message.find(words) != std::string::npos);
}

}  // namespace

TEST_CASE("sage_exact's attention begins with sm_80, its other boundaries with sm_75",
          "[specializer][family_chips]") {
  check_refused(sage(SageBoundary::kAttention), "sm_75",
                "boundary=attention has no kernel on sm_75: the MMA steps of int8 and f16 that it "
                "is made of need sm_80 or later; the other boundaries have one");
  for (const SageBoundary boundary :
       {SageBoundary::kPrep, SageBoundary::kKMean, SageBoundary::kQkInt8, SageBoundary::kVFp8}) {
    CHECK(serve(sage(boundary), target_of("sm_75")));
  }
  // What has no such steps computes their models.
  for (const char* const name : {"sm_80", "sm_90a", "gfx803", "gfx1201", "host"}) {
    INFO(name);
    CHECK(serve(sage(SageBoundary::kAttention), target_of(name)));
  }
}

TEST_CASE("sage_exact's warpgroup schedule is sm_90a's alone", "[specializer][family_chips]") {
  SageExactShape shape = sage(SageBoundary::kAttention);
  shape.schedule = SageSchedule::kWarpgroup;
  CHECK(serve(shape, target_of("sm_90a")));
  check_refused(shape, "sm_90",
                "schedule=warpgroup needs sm_90a; sm_90 is served by schedule=plain");
}

TEST_CASE("sparse_rows tile=mma is refused where the matrix unit has no form of its tile",
          "[specializer][family_chips]") {
  for (const char* const name :
       {"sm_75", "gfx906", "gfx908", "gfx908:sramecc+:xnack-", "gfx1030", "gfx1201"}) {
    check_refused(sparse(SparseTile::kMma), name, "tile=scalar works");
    CHECK(serve(sparse(SparseTile::kScalar), target_of(name)));
  }
  for (const char* const name :
       {"sm_80", "sm_90a", "gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1151", "host"}) {
    INFO(name);
    CHECK(serve(sparse(SparseTile::kMma), target_of(name)));
  }
}

}  // namespace broach::specializer
