#include "tools/broach/shape_argument.hpp"

#include "tests/support/catch.hpp"

using namespace broach;
using namespace broach::tool;

TEST_CASE("a shape is the same as several arguments and as one quoted string",
          "[tools][shape_argument]") {
  const auto several = split_shape({"window_rows", "head_dim=256", "kv_layout=ring(1536)"});
  const auto quoted = split_shape({" window_rows  head_dim=256\tkv_layout=ring(1536) "});
  REQUIRE(several);
  REQUIRE(quoted);
  CHECK(several->family->name() == "window_rows");
  CHECK(several->items == std::vector<std::string>{"head_dim=256", "kv_layout=ring(1536)"});
  CHECK(quoted->items == several->items);
}

TEST_CASE("a shape without a known family is refused with the families",
          "[tools][shape_argument]") {
  for (const auto& arguments : {std::vector<std::string>{}, {"  "}, {"head_dim=256"}, {"rows"}}) {
    const auto shape = split_shape(arguments);
    REQUIRE_FALSE(shape);
    CHECK(shape.error().code == ErrorCode::kInvalidArgument);
    CHECK(shape.error().message.find("window_rows") != std::string::npos);
  }
}
