#include "tests/tools/reference/portable_exponential.hpp"

#include "common/exp.cuh"

namespace broach::test {

float portable_exponential(float x) { return exp32(x); }

}  // namespace broach::test
