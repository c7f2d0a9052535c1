#include "specializer/bounded_json.hpp"

#include <string>

#include "specializer/compile/identity_record.hpp"
#include "specializer/manifest.hpp"
#include "specializer/window_rows/shape.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/window_rows_shape.hpp"

namespace broach::specializer {
namespace {

using Json = nlohmann::json;

std::string nested(int levels) {
  return std::string(static_cast<std::size_t>(levels), '[') +
         std::string(static_cast<std::size_t>(levels), ']');
}

std::string fault(const std::string& text) {
  const auto value = parse_json<Json>(text);
  return value ? "" : value.error().message;
}

}  // namespace

TEST_CASE("JSON is read up to a depth that nothing here reaches", "[specializer][json]") {
  CHECK(parse_json<Json>(R"({"a": [1, {"b": null}]})").value()["a"][1].contains("b"));
  CHECK(fault(nested(kMaxJsonDepth)).empty());
  CHECK(fault(nested(kMaxJsonDepth + 1)) == "it nests deeper than 32 levels");
  CHECK(fault("{\n\"a\": oops}").starts_with("line 2 is not JSON: "));
  CHECK(fault("").starts_with("line 1 is not JSON: "));
  CHECK(fault("{\"a\": 1e999}").starts_with("it is not JSON: "));
}

// Values that deep once ended the process: whoever copied or printed them ran out of stack.
TEST_CASE("what nests a million levels is refused wherever JSON is read", "[specializer][json]") {
  const std::string deep = nested(1'000'000);
  const auto manifest = read_manifest("deep.json", "{\"manifest\": " + deep + "}");
  REQUIRE_FALSE(manifest);
  CHECK(manifest.error().message == "manifest deep.json: it nests deeper than 32 levels");
  const auto shape = test::window_rows_from_json("{\"head_dim\": " + deep + "}");
  REQUIRE_FALSE(shape);
  CHECK(shape.error().code == ErrorCode::kInvalidArgument);
  CHECK_FALSE(parse_identity_record("{\"stands_on\": " + deep + "}"));
}

}  // namespace broach::specializer
