#pragma once

namespace broach::test {

/// The kernels' own exponential, compiled here as plain C++ (tests/kernel_src tries all arguments).
float portable_exponential(float x);

}  // namespace broach::test
