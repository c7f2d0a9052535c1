#include "tools/broach/format.hpp"

#include "tests/support/catch.hpp"

using namespace broach::tool;

TEST_CASE("a table's columns are as wide as their widest cell and lines end in no blank",
          "[tools][format]") {
  Table table;
  table.column("NAME").column("N", Table::Align::kRight).column("LAST");
  table.row({"a", "7", "x"});
  table.row({"longer", "1234", ""});
  table.row({"\xc3\xbc", "1"});
  CHECK(table.text() ==
        "NAME       N  LAST\n"
        "a          7  x\n"
        "longer  1234\n"
        "\xc3\xbc          1\n");
}

TEST_CASE("byte counts keep four digits at most and change unit before they round up",
          "[tools][format]") {
  CHECK(bytes_text(0) == "0 B");
  CHECK(bytes_text(1023) == "1023 B");
  CHECK(bytes_text(1024) == "1.0 KiB");
  CHECK(bytes_text(1024 * 1024 - 1) == "1.0 MiB");
  CHECK(bytes_text(3ULL << 30) == "3.0 GiB");
  CHECK(bytes_text(~0ULL) == "16.0 EiB");
}

TEST_CASE("durations change unit as they grow", "[tools][format]") {
  CHECK(duration_text(-1) == "0 s");
  CHECK(duration_text(0.041) == "0.04 s");
  CHECK(duration_text(9.996) == "10.0 s");
  CHECK(duration_text(59.96) == "1 min 00 s");
  CHECK(duration_text(125.2) == "2 min 05 s");
  CHECK(duration_text(3 * 3600 + 7 * 60) == "3 h 07 min");
}

TEST_CASE("times are UTC and an unknown time is a dash", "[tools][format]") {
  CHECK(time_text(0) == "-");
  CHECK(time_text(1'769'868'309'123) == "2026-01-31 14:05:09Z");
}

TEST_CASE("a line of text stays one line", "[tools][format]") {
  CHECK(one_line("a\nb\x1b[31m\x7f") == "a\\nb\\x1b[31m\\x7f");
  CHECK(count_text(1, "shape") == "1 shape");
  CHECK(count_text(0, "shape") == "0 shapes");
  CHECK(number_text(std::nullopt) == "-");
}
