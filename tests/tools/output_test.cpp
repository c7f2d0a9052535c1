#include "tools/broach/output.hpp"

#include <unistd.h>

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/support/catch.hpp"

using namespace broach;
using namespace broach::tool;

namespace {

struct Closer {
  void operator()(std::FILE* file) const noexcept { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, Closer>;

std::string contents(std::FILE* file) {
  std::fflush(file);
  std::rewind(file);
  std::string text;
  for (int c = std::fgetc(file); c != EOF; c = std::fgetc(file)) text += static_cast<char>(c);
  return text;
}

}  // namespace

TEST_CASE("an error is one line, its detail indented, and JSON where JSON was asked for",
          "[tools][output]") {
  const File results(std::tmpfile());
  const File messages(std::tmpfile());
  Output output(results.get(), messages.get());
  const Error error{ErrorCode::kCompileFailed, "two\nlines", "log 1\nlog 2\n"};
  SECTION("for people") {
    CHECK(output.fail(error) == ExitStatus::kDoesNotHold);
    CHECK(contents(messages.get()) == "broach: two\\nlines\n    log 1\n    log 2\n");
    CHECK(contents(results.get()).empty());
  }
  SECTION("for scripts") {
    output.set_style(Style::kJson);
    CHECK(output.fail(error) == ExitStatus::kDoesNotHold);
    const Json json = Json::parse(contents(results.get()));
    CHECK(json["error"]["code"] == "compile_failed");
    CHECK(json["error"]["message"] == "two\nlines");
  }
}

TEST_CASE("a document is one line in a file and survives bytes that are not UTF-8",
          "[tools][output]") {
  const File results(std::tmpfile());
  Output output(results.get(), stderr);
  output.document({{"log", "\xff\xfe"}, {"a", 1}});
  CHECK(contents(results.get()) == "{\"log\":\"\xef\xbf\xbd\xef\xbf\xbd\",\"a\":1}\n");
}

TEST_CASE("output that cannot be written turns success into a storage failure", "[tools][output]") {
  if (access("/dev/full", W_OK) != 0) BROACH_SKIP("no /dev/full");
  const File full(std::fopen("/dev/full", "w"));
  const File messages(std::tmpfile());
  Output output(full.get(), messages.get());
  output.text("lost\n");
  CHECK(output.close(ExitStatus::kSuccess) == ExitStatus::kStorage);
  CHECK(contents(messages.get()).find("No space left on device") != std::string::npos);
}

TEST_CASE("every kind of error has a status that scripts can tell apart", "[tools][output]") {
  CHECK(exit_status_of(ErrorCode::kInvalidArgument) == ExitStatus::kBadInput);
  CHECK(exit_status_of(ErrorCode::kNotFound) == ExitStatus::kMissing);
  CHECK(exit_status_of(ErrorCode::kDenied) == ExitStatus::kStorage);
  CHECK(exit_status_of(ErrorCode::kDamaged) == ExitStatus::kDoesNotHold);
  CHECK(exit_status_of(ErrorCode::kInternal) == ExitStatus::kInternal);
}
