#pragma once

namespace broach::test {

/// The kernels' own exponential and tanh, compiled here as plain C++ (tests/kernel_src tries all
/// arguments).
float portable_exponential(float x);
float portable_tanh(float x);

}  // namespace broach::test
