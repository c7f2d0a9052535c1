#include "specializer/json_text.hpp"

#include <nlohmann/json.hpp>

#include "specializer/compile/identity_record.hpp"
#include "tests/support/catch.hpp"

namespace broach::specializer {
namespace {

const IdentityRecord kRecord{"nvrtc 13.0.88 CL-36424714",
                             "NVRTC \"13.0\"\n",
                             {{"/usr/lib/a.so", "0123"}, {"/usr/lib/b.so", ""}},
                             {13, 0}};

bool reads(std::string_view text) { return parse_identity_record(text).has_value(); }

}  // namespace

TEST_CASE("an object's text is what a JSON library writes for it", "[specializer][json]") {
  const std::string odd = "a \"b\" \\ \n \x01 caf\xc3\xa9";
  JsonObject object;
  object.set("z", std::uint64_t{18446744073709551615U}).set("name", "old").set("name", odd);
  object.set_json("list", "[1,2]");
  const nlohmann::json same = {
      {"z", 18446744073709551615U}, {"name", odd}, {"list", nlohmann::json::array({1, 2})}};
  CHECK(object.text() == same.dump());
  CHECK(JsonObject().text() == "{}");
}

TEST_CASE("a compiler's remembered identity reads as it was written, in any order",
          "[specializer][identity]") {
  const auto text = to_text(kRecord);
  REQUIRE(text);
  CHECK(parse_identity_record(*text) == kRecord);
  CHECK(parse_identity_record(nlohmann::json::parse(*text).dump(2)) == kRecord);
  CHECK(parse_identity_record(R"({"toolkit":[1,2,"x"],"more":{"path":[{"a":1}]},"words":"w",
      "stands_on":[{"build_id":"b","x":{"path":5},"path":"p"}],"key_text":"k"})") ==
        IdentityRecord{"k", "w", {{"p", "b"}}, {1, 2}});
  CHECK_FALSE(to_text(IdentityRecord{"k", "w", {{"\xff", "b"}}, {1, 2}}));
}

TEST_CASE("a memo that says less or something else is no identity", "[specializer][identity]") {
  const auto whole = nlohmann::json::parse(*to_text(kRecord));
  for (const auto& [name, value] : whole.items()) {
    CAPTURE(name);
    auto less = whole;
    less.erase(name);
    CHECK_FALSE(reads(less.dump()));
    for (const nlohmann::json& other :
         {nlohmann::json(5), nlohmann::json(nullptr), nlohmann::json::array({"x", 1}),
          nlohmann::json::array({nlohmann::json::object()}),
          nlohmann::json::array({nlohmann::json::array({1, 2})})}) {
      auto wrong = whole;
      wrong[name] = other;
      CHECK_FALSE(reads(wrong.dump()));
    }
  }
  const std::string text = whole.dump();
  for (std::size_t length = 0; length < text.size(); ++length) {
    CHECK_FALSE(reads(text.substr(0, length)));
  }
}

}  // namespace broach::specializer
