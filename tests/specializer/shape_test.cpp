#include "specializer/window_rows/shape.hpp"

#include <set>
#include <utility>

#include "tests/support/catch.hpp"
#include "tests/support/window_rows_shape.hpp"

namespace broach::specializer {
namespace {

using test::parse_window_rows;
using test::resolved;
using test::window_rows_from_json;

WindowRowsShape gemma_like() {
  WindowRowsShape shape;
  shape.head_dim = 256;
  shape.gqa_ratio = 2;
  shape.window = 1024;
  shape.kv_layout = {KvLayoutKind::kRing, 1536};
  return shape;
}

const Target& host() {
  static const Target target = *parse_target("host");
  return target;
}

bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("every head_dim and ratio of the shape table is served in each form and arithmetic",
          "[specializer][shape]") {
  WindowRowsShape shape = gemma_like();
  for (const auto& [form, arith] : {std::pair{Form::kDecode, Arith::kChunk256},
                                    {Form::kDecode, Arith::kTile64},
                                    {Form::kPrefill, Arith::kTile64},
                                    {Form::kDecode, Arith::kTile64Ex2},
                                    {Form::kPrefill, Arith::kTile64Ex2},
                                    {Form::kPrefill, Arith::kMma32}}) {
    shape.form = form;
    shape.arith = arith;
    for (const std::uint32_t dim : {64U, 80U, 96U, 112U, 128U, 192U, 256U, 512U}) {
      for (std::uint32_t ratio = 1; ratio <= 32; ++ratio) {
        shape.head_dim = dim;
        shape.gqa_ratio = ratio;
        INFO(to_text(shape));
        CHECK(serve(shape, host()));
      }
    }
  }
}

TEST_CASE("a shape that cannot be served is refused with its field, value and way out",
          "[specializer][shape]") {
  struct Row {
    std::vector<std::string> change;
    std::string names, works;
  };
  const Row row = GENERATE(values<Row>({
      {{"head_dim=100"}, "head_dim=100", "96, 112"},
      {{"head_dim=0"}, "head_dim=0", "64, 80"},
      {{"head_dim=520"}, "head_dim=520", "512"},
      {{"gqa_ratio=0"}, "gqa_ratio=0", "1..32"},
      {{"gqa_ratio=33"}, "gqa_ratio=33", "1..32"},
      {{"window=1048577"}, "window=1048577", "1048576"},
      {{"window=1537"}, "window=1537", "ring(1536)"},
      {{"window=0"}, "kv_layout=ring(1536)", "linear"},
      {{"kv_layout=ring(0)"}, "ring(0)", "1024.."},
      {{"kv_layout=ring(4000000000)"}, "ring(4000000000)", "1024.."},
      {{"kv_layout=paged(0)"}, "paged(0)", "1..65536"},
      {{"kv_layout=paged(65537)"}, "paged(65537)", "1..65536"},
      {{"p32=on", "arith=chunk256"}, "p32=on", "form=prefill"},
      {{"arith=mma32"}, "arith=mma32", "chunk256"},
      {{"form=prefill", "arith=chunk256"}, "arith=chunk256", "tile64"},
  }));
  std::vector<std::string> words{"head_dim=256", "gqa_ratio=2", "window=1024",
                                 "kv_layout=ring(1536)"};
  for (const std::string& word : row.change) {
    std::erase_if(words, [&](const std::string& each) {
      return each.substr(0, each.find('=')) == word.substr(0, word.find('='));
    });
    words.push_back(word);
  }
  const auto shape = parse_window_rows(words);
  REQUIRE(shape);
  const auto served = serve(*shape, host());
  REQUIRE_FALSE(served);
  INFO(served.error().message);
  CHECK(served.error().code == ErrorCode::kInvalidArgument);
  CHECK(has(served.error().message, row.names));
  CHECK(has(served.error().message, row.works));
}

TEST_CASE("a form, arithmetic or layout without a kernel is refused, never accepted",
          "[specializer][shape]") {
  const std::vector<std::string> change = GENERATE(values<std::vector<std::string>>(
      {{"arith=tile64"}, {"form=prefill"}, {"form=prefill", "arith=mma32", "p32=on"}}));
  const Target target = *parse_target("gfx1100");
  std::vector<std::string> words{"head_dim=256", "gqa_ratio=2", "window=1024"};
  words.insert(words.end(), change.begin(), change.end());
  const auto shape = parse_window_rows(words);
  REQUIRE(shape);
  const auto served = serve(*shape, target);
  REQUIRE_FALSE(served);
  INFO(served.error().message);
  CHECK(served.error().code == ErrorCode::kUnsupported);
  CHECK(has(served.error().message, "has no kernel yet on gfx1100"));
  CHECK(has(served.error().message, "form=decode arith=chunk256"));
}

TEST_CASE("tile64 and mma32 need a chip with mma.sync's step, or the host that models it",
          "[specializer][shape]") {
  const std::string arith = GENERATE("tile64", "mma32");
  const auto shape = parse_window_rows({"head_dim=256", "gqa_ratio=2", "kv_layout=paged(64)",
                                        "form=prefill", "arith=" + arith, "p32=on"});
  REQUIRE(shape);
  for (const std::string_view name : {"sm_80", "sm_90a", "sm_121a", "host"}) {
    CHECK(serve(*shape, *parse_target(name)));
  }
  for (const std::string_view name : {"gfx90a", "gfx1030", "gfx1100"}) {
    const auto served = serve(*shape, *parse_target(name));
    REQUIRE_FALSE(served);
    CHECK(served.error().code == ErrorCode::kUnsupported);
    CHECK_FALSE(has(served.error().message, arith + " kv_layout=linear"));
  }
}

TEST_CASE("tile64_ex2 needs a chip whose exponential is known, or the host that models it",
          "[specializer][shape]") {
  const std::string form = GENERATE("decode", "prefill");
  const auto shape = parse_window_rows({"head_dim=256", "gqa_ratio=2", "kv_layout=paged(64)",
                                        "form=" + form, "arith=tile64_ex2", "p32=on"});
  REQUIRE(shape);
  for (const std::string_view name : {"sm_90a", "sm_90", "host"}) {
    const auto served = serve(*shape, *parse_target(name));
    CHECK(served);
    // It is the default there.
    WindowRowsShape by_default = *shape;
    by_default.arith = Arith::kDefault;
    CHECK(resolved(by_default, *parse_target(name)).arith == Arith::kTile64Ex2);
  }
  for (const std::string_view name : {"sm_80", "sm_89", "sm_100a", "sm_121a", "gfx1100"}) {
    const auto served = serve(*shape, *parse_target(name));
    REQUIRE_FALSE(served);
    CHECK(served.error().code == ErrorCode::kUnsupported);
    CHECK(has(served.error().message, "arith=tile64_ex2"));
  }
  WindowRowsShape on_sm_80 = *shape;
  on_sm_80.arith = Arith::kDefault;
  CHECK(resolved(on_sm_80, *parse_target("sm_80")).arith == Arith::kTile64);
}

TEST_CASE("a default arithmetic resolves to a named one and nothing else changes",
          "[specializer][shape]") {
  const WindowRowsShape shape = gemma_like();
  WindowRowsShape expected = shape;
  const WindowRowsShape got = resolved(shape, host());
  CHECK(got.arith != Arith::kDefault);
  expected.arith = got.arith;
  CHECK(got == expected);
  CHECK(resolved(got, host()) == got);
}

TEST_CASE("a decode's default arithmetic is its prefill's wherever that has a kernel",
          "[specializer][shape]") {
  WindowRowsShape decode = gemma_like();
  decode.arith = Arith::kDefault;
  WindowRowsShape prefill = decode;
  prefill.form = Form::kPrefill;
  WindowRowsShape p32 = decode;
  p32.p32 = Switch::kOn;
  for (const std::string_view name : known_targets()) {
    const Target target = *parse_target(name);
    CAPTURE(name);
    CHECK(serve(decode, target));
    const bool has_prefill = serve(prefill, target).ok();
    CHECK(has_prefill ==
          (target.mma_step == MmaStep::kTwoK8 || target.mma_step == MmaStep::kOneK16));
    const Arith expected = has_prefill ? resolved(prefill, target).arith : Arith::kChunk256;
    CHECK(resolved(decode, target).arith == expected);
    // chunk256 has P in fp32 throughout: by default that serves who asks for p32.
    REQUIRE(serve(p32, target));
    CHECK(resolved(p32, target).p32 == (has_prefill ? Switch::kOn : Switch::kOff));
  }
}

TEST_CASE("a shape's text, JSON and parameters read back", "[specializer][shape]") {
  const auto shape = parse_window_rows(
      {"window_rows", "head_dim=64", "gqa_ratio=8", "window=0", "kv_layout=paged(64)", "dtype=f16",
       "form=prefill", "arith=tile64", "p32=on", "softcap=on", "sinks=on", "checked=on"});
  REQUIRE(shape);
  const std::string json =
      R"j({"arith":"tile64","checked":"on","dtype":"f16","family":"window_rows",)j"
      R"j("form":"prefill","gqa_ratio":8,"head_dim":64,"kv_layout":"paged(64)","p32":"on",)j"
      R"j("sinks":"on","softcap":"on","window":0})j";
  CHECK(to_json(*shape) == json);
  const auto back = window_rows_from_json(to_json(*shape));
  REQUIRE(back);
  CHECK(*back == *shape);
  CHECK(to_text(gemma_like()) ==
        "window_rows head_dim=256 gqa_ratio=2 window=1024 kv_layout=ring(1536) dtype=bf16 p32=off "
        "softcap=off sinks=off form=decode arith=default checked=off");
  const std::vector<ShapeParameter> listed = parameters(*shape);
  REQUIRE(listed.size() == 11);
  CHECK(listed.front().name == "head_dim");
  CHECK(listed[3].value == "paged(64)");
}

TEST_CASE("prompt is read for prefill wherever a shape is, and never written",
          "[specializer][shape]") {
  const auto text = parse_window_rows({"head_dim=64", "form=prompt"});
  const auto json = window_rows_from_json(R"({"head_dim":64,"form":"prompt"})");
  REQUIRE(text);
  REQUIRE(json);
  CHECK(text->form == Form::kPrefill);
  CHECK(*json == *text);
  CHECK(has(to_text(*text), "form=prefill"));
  CHECK(has(to_json(*text), R"("form":"prefill")"));
  CHECK_FALSE(parse_window_rows({"form=prompts"}));
  CHECK_FALSE(parse_window_rows({"arith=prompt"}));
}

TEST_CASE("a typed shape goes to a Shape and back, and unequal shapes are told apart",
          "[specializer][shape]") {
  WindowRowsShape typed = gemma_like();
  typed.dtype = Dtype::kF16;
  typed.form = Form::kPrefill;
  typed.arith = Arith::kMma32;
  typed.p32 = typed.softcap = typed.sinks = typed.checked = Switch::kOn;
  const Shape shape = shape_of(typed);
  CHECK(typed_of<WindowRowsShape>(shape) == typed);
  CHECK(shape == shape_of(typed));
  for (std::size_t i = 0; i < shape.values().size(); ++i) {
    INFO(shape.family().fields()[i].name);
    Shape other = shape;
    other.set(i, shape[i] ^ 1U);
    CHECK_FALSE(other == shape);
    CHECK(hash_of(other) != hash_of(shape));
    CHECK_FALSE(typed_of<WindowRowsShape>(other) == typed);
  }
  CHECK(typed_of<WindowRowsShape>(Shape(window_rows::family())) == WindowRowsShape{});
}

TEST_CASE("every family's name, fields and choices can be written and read back",
          "[specializer][family]") {
  std::set<std::string_view> names;
  for (const Family* family : families()) {
    INFO(family->name());
    CHECK(names.insert(family->name()).second);
    CHECK(find_family(family->name()) == family);
    REQUIRE(family->fields().size() <= kMaxFields);
    Shape shape(*family);
    for (std::size_t i = 0; i < family->fields().size(); ++i) {
      const Field& field = family->fields()[i];
      INFO(field.name);
      if (field.kind == FieldKind::kNumber) shape.set(i, 4294967295U);
      if (field.kind == FieldKind::kChoice) shape.set(i, field.choices.size() - 1);
      if (field.kind != FieldKind::kChoiceWithNumber) continue;
      const auto last = static_cast<std::uint32_t>(field.choices.size() - 1);
      shape.set(i, choice_value(last, field.choices[last].takes_number == TakesNumber::kYes));
    }
    const auto back = shape_from_json(*family, to_json(shape));
    REQUIRE(back);
    CHECK(*back == shape);
  }
  const auto none = family_named("rows");
  REQUIRE_FALSE(none);
  CHECK(has(none.error().message, "window_rows"));
}

TEST_CASE("text that does not read is named, with what would", "[specializer][shape]") {
  const std::string word = GENERATE(
      "head_dim", "head_dim=", "head_dim=-1", "head_dim=1e2", "head_dim=4294967296", "size=3",
      "dtype=fp8", "kv_layout=ring", "kv_layout=ring()", "kv_layout=ring(5", "kv_layout=linear(3)",
      "kv_layout=paged(x)", "kv_layout=", "form=both", "p32=yes", "arith=fast", "");
  const auto shape = parse_window_rows({word});
  REQUIRE_FALSE(shape);
  INFO(shape.error().message);
  CHECK(shape.error().code == ErrorCode::kInvalidArgument);
  const std::string value = word.substr(word.find('=') + 1);
  CHECK(has(shape.error().message, value));
}

TEST_CASE("a word without a name and a name given twice are refused", "[specializer][shape]") {
  CHECK_FALSE(parse_window_rows({"=4"}));
  const auto twice = parse_window_rows({"head_dim=64", "head_dim=128"});
  REQUIRE_FALSE(twice);
  CHECK(has(twice.error().message, "head_dim is given twice"));
}

TEST_CASE("JSON shapes with a wrong field, type or family are refused", "[specializer][shape]") {
  const std::string json =
      GENERATE("", "[]", "{", R"({"head_dim":-1})", R"({"head_dim":64.5})", R"({"head_dim":null})",
               R"({"head_dimension":64})", R"({"family":"sage_exact"})", R"({"family":3})",
               R"({"kv_layout":{"ring":3}})");
  INFO(json);
  const auto shape = window_rows_from_json(json);
  REQUIRE_FALSE(shape);
  CHECK(shape.error().code == ErrorCode::kInvalidArgument);
}

TEST_CASE("JSON switches read as names and as truth values", "[specializer][shape]") {
  const auto shape = window_rows_from_json(R"({"sinks":true,"softcap":"on","checked":false})");
  REQUIRE(shape);
  CHECK(shape->sinks == Switch::kOn);
  CHECK(shape->softcap == Switch::kOn);
  CHECK(shape->checked == Switch::kOff);
}

}  // namespace broach::specializer
