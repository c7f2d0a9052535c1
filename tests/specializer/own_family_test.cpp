#include "specializer/own/own_family.hpp"

#include <sys/stat.h>

#include <fstream>
#include <string>

#include "specializer/family_set.hpp"
#include "specializer/own/load.hpp"
#include "specializer/plan.hpp"
#include "specializer/refusals.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/temp_dir.hpp"

namespace broach::specializer::own {
namespace {

constexpr std::string_view kText = R"({
  "family": 1, "name": "acme.scale",
  "parameters": [
    {"name": "dim", "type": "int", "range": [8, 4096], "multiple_of": 8, "constant": "kDim"},
    {"name": "dtype", "type": "enum", "values": {"bf16": "__nv_bfloat16", "f-16": "__half"},
     "macro": "ELEMENT", "constant": "kDtype"}
  ],
  "sources": ["scale.cuh"],
  "functions": ["acme_scale", {"name": "twice", "expression": "twice<{dim}, {dtype}>"}],
  "targets": ["sm_80+"],
  "refuse": ["spills", "local_memory"]
})";

std::shared_ptr<const OwnFamily> scale(std::string_view text = kText, std::string body = "// s\n") {
  auto family = OwnFamily::make("scale.json", text, {{"scale.cuh", std::move(body)}});
  if (!family) FAIL(family.error().message);
  return *family;
}

std::string replaced(std::string_view from, std::string_view to) {
  std::string text(kText);
  return text.replace(text.find(from), from.size(), to);
}

Result<Plan> plan_of(const OwnFamily& family, std::vector<std::string> items,
                     std::string_view target = "sm_90a") {
  auto shape = parse_shape(family, items);
  if (!shape) return shape.error();
  auto served = serve(*shape, *parse_target(target));
  if (!served) return served.error();
  return plan(*served);
}

bool says(const Error& error, std::string_view part) {
  return error.message.find(part) != std::string::npos;
}

void write(const std::filesystem::path& path, std::string_view bytes) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path) << bytes;
}

}  // namespace

TEST_CASE("a family of an engine renders its parameters and names its functions", "[own]") {
  const auto family = scale();
  const auto made = plan_of(*family, {"dim=4096", "dtype=f-16"});
  REQUIRE(made);
  CHECK(made->sources.front().name == "broach-main.cu");
  CHECK(made->sources.front().bytes ==
        "constexpr int kDim = 4096;\n"
        "constexpr int kDtype_bf16 = 0;\n"
        "constexpr int kDtype_f_16 = 1;\n"
        "constexpr int kDtype = 1;\n"
        "#define ELEMENT __half\n"
        "#include <scale.cuh>\n");
  REQUIRE(made->entries.size() == 2);
  CHECK(made->entries[0].expression == "acme_scale");
  CHECK(made->entries[1].function == "twice");
  CHECK(made->entries[1].expression == "twice<4096, __half>");
  CHECK(made->family == "acme.scale");
  CHECK(made->shape_json == R"({"dim":4096,"dtype":"f-16","family":"acme.scale"})");
}

TEST_CASE("each parameter, source byte and expression of a family is in the key", "[own]") {
  const auto key = [](const OwnFamily& family, std::vector<std::string> items) {
    const auto made = plan_of(family, std::move(items));
    REQUIRE(made);
    return key_of(*made, "compiler").key.hex();
  };
  const std::vector<std::string> items{"dim=64", "dtype=bf16"};
  const std::string base = key(*scale(), items);
  CHECK(key(*scale(), items) == base);
  CHECK(key(*scale(), {"dim=72", "dtype=bf16"}) != base);
  CHECK(key(*scale(), {"dim=64", "dtype=f-16"}) != base);
  CHECK(key(*scale(kText, "// t\n"), items) != base);
  CHECK(key(*scale(replaced("acme_scale", "acme_other")), items) != base);
  CHECK(key(*scale(replaced("twice<{dim}, {dtype}>", "twice<{dim}, {dtype}, 1>")), items) != base);
  CHECK(key(*scale(replaced("acme.scale", "acme.scales")), items) != base);
  // What decides no byte of the binary is not: a cache goes on serving.
  CHECK(key(*scale(replaced("[\"spills\", \"local_memory\"]", "[\"spills\"]")), items) == base);
}

TEST_CASE("a shape or target that a family does not serve is refused by name", "[own]") {
  const auto family = scale();
  const auto odd = plan_of(*family, {"dim=12"});
  REQUIRE_FALSE(odd);
  CHECK(odd.error().message ==
        "acme.scale dim=12 is not served; multiples of 8 from 8 to 4096 are");
  const auto none = plan_of(*family, {});
  REQUIRE_FALSE(none);
  CHECK(says(none.error(), "acme.scale dim=0 is not served"));
  const auto host = plan_of(*family, {"dim=64"}, "host");
  REQUIRE_FALSE(host);
  CHECK(host.error().reason == Reason::kNoKernel);
  CHECK(says(host.error(), "its \"targets\" are sm_80+"));
  const auto templates = plan_of(*scale(replaced("\"sm_80+\"", "\"host\"")), {"dim=64"}, "host");
  REQUIRE_FALSE(templates);
  CHECK(says(templates.error(), "twice is a template's instance, twice<64, bf16>") == false);
  CHECK(says(templates.error(), "twice is a template's instance, twice<64, __nv_bfloat16>"));
  CHECK_FALSE(OwnFamily::make("scale.json", kText, {}));
}

TEST_CASE("a set of families has one of a name", "[own]") {
  FamilySet set;
  const std::size_t ours = set.all().size();
  CHECK(ours == families().size());
  const auto first = set.add(scale());
  REQUIRE(first);
  CHECK(set.all().size() == ours + 1);
  CHECK(set.find("acme.scale") == *first);
  CHECK(*set.named("acme.scale") == *first);
  const auto same = set.add(scale());
  REQUIRE(same);
  CHECK(*same == *first);
  const auto other = set.add(scale(kText, "// other\n"));
  REQUIRE_FALSE(other);
  CHECK(says(other.error(), "two families \"acme.scale\""));
  const auto missing = set.named("acme.nosuch");
  REQUIRE_FALSE(missing);
  CHECK(says(missing.error(), "BROACH_FAMILY_PATH"));
  CHECK(says(missing.error(), "window_rows"));
}

TEST_CASE("a family is read from a file and the sources beside it", "[own]") {
  const test::TempDir directory;
  write(directory.path() / "scale.family.json", replaced("scale.cuh", "sub/scale.cuh"));
  write(directory.path() / "sub" / "scale.cuh", "// s\n");
  const auto file = directory.path() / "scale.family.json";
  const auto family = load_family(file);
  REQUIRE(family);
  CHECK((*family)->own_sources().front().bytes == "// s\n");
  CHECK((*family)->origin() == file.string());

  SECTION("a source that others can write is refused") {
    ::chmod((directory.path() / "sub" / "scale.cuh").c_str(), 0666);
    const auto open = load_family(file);
    REQUIRE_FALSE(open);
    CHECK(open.error().code == ErrorCode::kDenied);
    CHECK(says(open.error(), "source \"sub/scale.cuh\""));
  }
  SECTION("so is a directory that others can write") {
    ::chmod((directory.path() / "sub").c_str(), 0777);
    const auto open = load_family(file);
    REQUIRE_FALSE(open);
    CHECK(open.error().code == ErrorCode::kDenied);
  }
  SECTION("a source that is not there is named") {
    std::filesystem::remove(directory.path() / "sub" / "scale.cuh");
    const auto missing = load_family(file);
    REQUIRE_FALSE(missing);
    CHECK(missing.error().code == ErrorCode::kNotFound);
    CHECK(says(missing.error(), "source \"sub/scale.cuh\""));
  }
  SECTION("a family file of a size that none has is not read") {
    std::filesystem::resize_file(file, (1 << 20) + 1);
    const auto large = load_family(file);
    REQUIRE_FALSE(large);
    CHECK(large.error().code == ErrorCode::kLimitExceeded);
  }
}

TEST_CASE("a binary with what its family refuses is not served", "[own]") {
  const auto made = plan_of(*scale(), {"dim=64"});
  REQUIRE(made);
  LaunchLimits limits;
  limits.function = "acme_scale";
  limits.spill_bytes = 0;
  limits.stack_bytes = 0;
  CHECK(check_refusals(*made, {{limits}}));
  limits.spill_bytes = 16;
  const auto spills = check_refusals(*made, {{limits}});
  REQUIRE_FALSE(spills);
  CHECK(spills.error().message ==
        "acme.scale for sm_90a: function acme_scale spills 16 bytes a thread, which the family "
        "refuses");
  limits.spill_bytes = 0;
  limits.vgpr_spills = 2;
  CHECK_FALSE(check_refusals(*made, {{limits}}));
  limits.vgpr_spills = 0;
  limits.stack_bytes = 8;
  CHECK_FALSE(check_refusals(*made, {{limits}}));
  Plan lenient = *made;
  lenient.refusals = {};
  CHECK(check_refusals(lenient, {{limits}}));
}

}  // namespace broach::specializer::own
