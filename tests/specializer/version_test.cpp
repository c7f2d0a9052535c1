#include "specializer/version.hpp"

#include "tests/support/catch.hpp"

namespace broach::specializer {

TEST_CASE("a CUDA version reads back as it was written", "[specializer][version]") {
  const Version version = GENERATE(values<Version>({{10, 0}, {12, 9}, {13, 10}, {}}));
  CHECK(parse_cuda_words(cuda_words(version)) == version);
  CHECK(cuda_words({12, 9}) == "CUDA 12.9");
  CHECK(cuda_words({}).empty());
}

TEST_CASE("text that is no CUDA version states none", "[specializer][version]") {
  const auto* text = GENERATE("", "CUDA", "CUDA 12", "CUDA 12.", "CUDA 12.9 ", "cuda 12.9", "12.9",
                              "CUDA 99999999999.0", "580.65 (CUDA 13.0)");
  INFO(text);
  CHECK_FALSE(parse_cuda_words(text).stated());
}

TEST_CASE("versions compare by number, not by text", "[specializer][version]") {
  CHECK(Version{13, 10} > Version{13, 9});
  CHECK(Version{9, 2} < Version{13, 0});
}

}  // namespace broach::specializer
