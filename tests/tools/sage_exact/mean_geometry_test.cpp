#include "runtime/sage_exact/mean_geometry.hpp"

#include "tests/support/catch.hpp"

namespace broach::runtime::sage_exact {

TEST_CASE("the mean's sums are split as the reference splits them on an H200",
          "[runtime][sage_exact]") {
  const auto of_1024 = mean_geometry(1024, 4, {});
  CHECK(of_1024.blocks == 16);
  CHECK(of_1024.step == 64);
  const auto of_2_heads = mean_geometry(37810, 2, {});
  CHECK(of_2_heads.blocks == 591);
  CHECK(of_2_heads.step == 2364);
  const auto of_56_heads = mean_geometry(37810, 56, {});
  CHECK(of_56_heads.blocks == 38);
  CHECK(of_56_heads.step == 152);
}

TEST_CASE("short sums are not split, and long ones by the device's size", "[runtime][sage_exact]") {
  const auto of_50 = mean_geometry(50, 1, {});
  CHECK(of_50.lanes == 1);
  CHECK(of_50.blocks == 1);
  CHECK(of_50.step == 1);
  CHECK(of_50.factor == 1.0F / 50.0F);
  const auto of_64 = mean_geometry(64, 1, {});
  CHECK(of_64.lanes == 4);
  CHECK(of_64.blocks == 1);
  CHECK(of_64.step == 4);
  CHECK(mean_geometry(1020, 1, {}).blocks == 1);
  CHECK(mean_geometry(1021, 1, {}).blocks == 16);
  // 170 multiprocessors of 1,536 threads: another order of the sums.
  CHECK(mean_geometry(37810, 56, {170, 1536}).blocks == 37);
  // More heads than blocks run at once: no split, however long.
  CHECK(mean_geometry(37810, 2113, {}).blocks == 1);
}

}  // namespace broach::runtime::sage_exact
