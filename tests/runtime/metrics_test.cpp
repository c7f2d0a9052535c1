#include "broach/metrics.hpp"

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "runtime/exposition.hpp"
#include "runtime/metrics.hpp"
#include "tests/runtime/fixture.hpp"
#include "tests/support/catch.hpp"
#include "tools/contract/window_rows/launch.hpp"
#include "tools/contract/window_rows/run.hpp"

namespace broach {
namespace {

using test::options_in;
using test::small_shape;

const DurationHistogram& find(const Metrics& metrics, std::string_view operation,
                              std::string_view cause) {
  for (const DurationHistogram& each : metrics.durations) {
    if (each.operation == operation && each.cause == cause) return each;
  }
  FAIL("no histogram of " << operation << " " << cause);
  std::abort();
}

std::uint64_t count(const Runtime& runtime, std::string_view operation, std::string_view cause) {
  return find(runtime.metrics(), operation, cause).count;
}

/// One series of a histogram as a reader of the text collects it.
struct Series {
  std::vector<double> bounds;
  std::vector<double> counts;
  double sum = -1;
  double count = -1;
};

/// Reads the histogram's lines back; the series' name is what stands between its braces but `le`.
std::map<std::string, Series> series_of(const std::string& text, const std::string& name) {
  std::map<std::string, Series> found;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind(name + "_", 0) != 0) continue;
    const std::size_t open = line.find('{');
    const std::size_t close = line.rfind('}');
    const std::string suffix = line.substr(name.size(), open - name.size());
    std::string labels = line.substr(open + 1, close - open - 1);
    const double value = std::stod(line.substr(close + 2));
    if (suffix == "_bucket") {
      const std::size_t le = labels.find(",le=\"");
      REQUIRE(le != std::string::npos);
      const std::string bound = labels.substr(le + 5, labels.size() - le - 6);
      labels.resize(le);
      found[labels].bounds.push_back(bound == "+Inf" ? HUGE_VAL : std::stod(bound));
      found[labels].counts.push_back(value);
    } else if (suffix == "_sum") {
      found[labels].sum = value;
    } else {
      REQUIRE(suffix == "_count");
      found[labels].count = value;
    }
  }
  return found;
}

/// What the format demands of a histogram; empty when it holds.
std::string fault_of(const Series& series) {
  if (series.bounds.empty()) return "no bucket";
  if (series.bounds.back() != HUGE_VAL) return "the last bucket is bounded";
  if (series.counts.back() != series.count) return "the last bucket is not the count";
  if (series.sum < 0) return "no sum";
  for (std::size_t i = 1; i < series.bounds.size(); ++i) {
    if (series.bounds[i] <= series.bounds[i - 1]) return "bounds do not grow";
    if (series.counts[i] < series.counts[i - 1]) return "buckets are not summed up";
  }
  return "";
}

/// A Python that has Prometheus's client library: a distribution's package is seen by its own only.
std::string python_with_reader() {
  for (const std::string name : {"python3", "/usr/bin/python3"}) {
    const std::string probe = name + " -c 'import prometheus_client.parser' 2>/dev/null";
    if (std::system(probe.c_str()) == 0) return name;
  }
  return "";
}

}  // namespace

TEST_CASE("a runtime counts and times look-ups, compiles, publishes and loads, and no launch",
          "[runtime][metrics]") {
  const test::TempDir dir;
  {
    auto runtime = Runtime::create(options_in(dir));
    REQUIRE(runtime);
    CHECK(count(*runtime, "look_up", "miss") == 0);
    auto op = window_rows_decode(*runtime, small_shape());
    REQUIRE(op);
    CHECK(count(*runtime, "look_up", "miss") == 1);
    CHECK(count(*runtime, "compile", "done") == 1);
    CHECK(count(*runtime, "publish", "stored") == 1);
    CHECK(count(*runtime, "load", "done") == 1);
    const DurationHistogram compile = find(runtime->metrics(), "compile", "done");
    CHECK(compile.sum_seconds > 0);
    // A shape that is known, and what is launched through its handle, adds nothing.
    const auto decode = [&] {
      return contract::window_rows::run_case(*runtime, *runtime->state().device,
                                             contract::window_rows::ragged_decodes().front());
    };
    REQUIRE(decode());
    const std::string before = runtime->metrics().prometheus();
    REQUIRE(decode());
    REQUIRE(window_rows_decode(*runtime, small_shape()));
    CHECK(runtime->metrics().prometheus() == before);
  }
  auto next = Runtime::create(options_in(dir));
  REQUIRE(next);
  REQUIRE(window_rows_decode(*next, small_shape()));
  CHECK(count(*next, "look_up", "user") == 1);
  CHECK(count(*next, "compile", "done") == 0);
  CHECK(count(*next, "load", "done") == 1);
}

TEST_CASE("a shape that waited for a compiler is in the journal", "[runtime][metrics]") {
  const test::TempDir dir;
  auto runtime = Runtime::create(options_in(dir));
  REQUIRE(runtime);
  REQUIRE(window_rows_decode(*runtime, small_shape()));
  const auto missed = runtime->state().forge.cache().journal();
  REQUIRE(missed);
  REQUIRE(missed->size() == 1);
  CHECK(missed->front().target == runtime->target_name());
  auto again = Runtime::create(options_in(dir));
  REQUIRE(window_rows_decode(*again, small_shape()));
  CHECK(again->state().forge.cache().journal()->front().count == 1);
}

TEST_CASE("the exposition's histograms are summed up and end with their count",
          "[runtime][metrics]") {
  Metrics metrics;
  metrics.events = {{"published", 3}};
  DurationHistogram compile{"compile", "done", 0, 2.5, {}};
  compile.buckets[3] = 2;
  compile.buckets[20] = 5;
  compile.buckets[kMetricBuckets - 1] = 1;
  compile.count = 8;
  metrics.durations = {compile, {"load", "done", 0, 0, {}}};
  const std::string text = metrics.prometheus();
  CHECK(text.find("# TYPE broach_duration_seconds histogram\n") != std::string::npos);
  CHECK(text.find("broach_cache_events_total{event=\"published\"} 3\n") != std::string::npos);
  const auto series = series_of(text, "broach_duration_seconds");
  REQUIRE(series.size() == 1);  // What never happened is left out.
  const auto& [labels, read] = *series.begin();
  CHECK(labels == "operation=\"compile\",cause=\"done\"");
  CHECK(fault_of(read).empty());
  CHECK(read.count == 8);
  CHECK(read.sum == 2.5);
  CHECK(read.bounds.size() == kMetricBuckets);
  CHECK(read.bounds[0] == 1e-6);
  CHECK(read.counts[3] == 2);
  CHECK(read.counts[20] == 7);
}

TEST_CASE("the check of histograms finds those that are wrong", "[runtime][metrics]") {
  const Series good{{1, 2, HUGE_VAL}, {1, 1, 4}, 9, 4};
  CHECK(fault_of(good).empty());
  Series bad = good;
  SECTION("not summed up") { bad.counts = {3, 1, 4}; }
  SECTION("another count") { bad.count = 5; }
  SECTION("a bounded end") { bad.bounds = {1, 2, 3}; }
  SECTION("bounds out of order") { bad.bounds = {2, 1, HUGE_VAL}; }
  SECTION("no sum") { bad.sum = -1; }
  CHECK_FALSE(fault_of(bad).empty());
}

TEST_CASE("Prometheus's own reader takes the exposition", "[runtime][metrics]") {
  const std::string python = python_with_reader();
  if (python.empty()) BROACH_SKIP("python3-prometheus-client is not installed");
  const test::TempDir dir;
  auto runtime = Runtime::create(options_in(dir));
  REQUIRE(runtime);
  REQUIRE(window_rows_decode(*runtime, small_shape()));
  const std::string file = (dir.path() / "metrics.txt").string();
  std::ofstream(file) << runtime->metrics().prometheus();
  const std::string program =
      "from prometheus_client.parser import text_string_to_metric_families as read\n"
      "import sys\n"
      "found = {f.name: f for f in read(open(sys.argv[1]).read())}\n"
      "h = found['broach_duration_seconds']\n"
      "assert h.type == 'histogram', h.type\n"
      "n = {(s.labels['operation'], s.labels['cause']): s.value for s in h.samples\n"
      "     if s.name.endswith('_count')}\n"
      "assert n[('compile', 'done')] == 1 and n[('load', 'done')] == 1, n\n"
      "assert found['broach_cache_events'].type == 'counter', found.keys()\n";
  const std::string script = (dir.path() / "check.py").string();
  std::ofstream(script) << program;
  CHECK(std::system((python + " " + script + " " + file).c_str()) == 0);
  // The reader refuses what is no exposition.
  std::ofstream(file) << "broach_duration_seconds_bucket{le=0.1} nine\n";
  CHECK(std::system((python + " " + script + " " + file + " 2>/dev/null").c_str()) != 0);
}

}  // namespace broach
