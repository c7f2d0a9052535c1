/* The metrics of the C interface from C, on the host device. Exit status 0 only when every check
 * held. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "broach/metrics.h"
#include "broach/window_rows.h"
#include "c_check.h"

static char text[1024];
static broach_message message = {text, sizeof text, 0};

static broach_runtime* host_runtime(void) {
  broach_runtime_options options;
  broach_runtime* runtime = NULL;
  memset(&options, 0, sizeof options);
  options.size = sizeof options;
  options.device = "host";
  CHECK(broach_runtime_create(&options, &runtime, &message) == BROACH_OK);
  return runtime;
}

static void request_a_shape(broach_runtime* runtime) {
  broach_window_rows_shape shape;
  broach_window_rows_decode* op = NULL;
  memset(&shape, 0, sizeof shape);
  shape.size = sizeof shape;
  shape.head_dim = 64;
  shape.gqa_ratio = 1;
  shape.kv_layout = BROACH_KV_LINEAR;
  shape.arith = BROACH_ARITH_CHUNK256;
  CHECK(broach_window_rows_decode_create(runtime, &shape, NULL, &op, &message) == BROACH_OK);
  broach_window_rows_decode_destroy(op);
}

/* How often an operation took place, however it ended; -1 when it has no histogram. Every one's
 * buckets must add up to its count. */
static int64_t times(const broach_metrics* metrics, const char* operation) {
  int64_t found = -1;
  for (size_t i = 0; i < broach_metrics_histogram_count(metrics); ++i) {
    broach_duration_histogram histogram;
    uint64_t sum = 0;
    memset(&histogram, 0, sizeof histogram);
    histogram.size = sizeof histogram;
    CHECK(broach_metrics_histogram(metrics, i, &histogram, &message) == BROACH_OK);
    CHECK(histogram.cause[0] != '\0');
    for (size_t b = 0; b < BROACH_METRIC_BUCKETS; ++b) sum += histogram.buckets[b];
    CHECK(sum == histogram.count);
    if (strcmp(histogram.operation, operation) != 0) continue;
    found = (found < 0 ? 0 : found) + (int64_t)histogram.count;
  }
  return found;
}

static void test_reading(void) {
  broach_runtime* runtime = host_runtime();
  broach_metrics* before = NULL;
  broach_metrics* after = NULL;
  CHECK(broach_metrics_read(runtime, &before, &message) == BROACH_OK);
  request_a_shape(runtime);
  CHECK(broach_metrics_read(runtime, &after, &message) == BROACH_OK);
  CHECK(times(before, "load") == 0);
  CHECK(times(after, "load") == 1);
  CHECK(times(after, "look_up") >= 1);
  CHECK(times(after, "no such operation") == -1);
  CHECK(broach_metrics_event_count(after) > 0);
  broach_event_count event;
  memset(&event, 0, sizeof event);
  event.size = sizeof event;
  CHECK(broach_metrics_event(after, 0, &event, &message) == BROACH_OK);
  CHECK(event.count > 0 && event.name[0] != '\0');
  CHECK(strstr(broach_metrics_prometheus(after),
               "broach_duration_seconds_count{operation=\"load\",cause=\"done\"} 1\n") != NULL);
  broach_metrics_destroy(before);
  /* A reading outlives its runtime. */
  broach_runtime_destroy(runtime);
  CHECK(times(after, "load") == 1);
  broach_metrics_destroy(after);
}

static void test_sizes(void) {
  broach_runtime* runtime = host_runtime();
  broach_metrics* metrics = NULL;
  struct {
    broach_duration_histogram known;
    uint64_t later;
  } newer;
  CHECK(broach_metrics_read(runtime, &metrics, &message) == BROACH_OK);
  memset(&newer, 0, sizeof newer);
  CHECK(broach_metrics_histogram(metrics, 0, &newer.known, &message) == BROACH_INVALID_ARGUMENT);
  CHECK(strstr(text, "broach_duration_histogram.size is 0") != NULL);
  newer.known.size = sizeof newer;
  newer.later = 77;
  CHECK(broach_metrics_histogram(metrics, 0, &newer.known, &message) == BROACH_OK);
  CHECK(newer.later == 77); /* What this library does not know is not written. */
  newer.known.size = sizeof newer.known;
  CHECK(broach_metrics_histogram(metrics, broach_metrics_histogram_count(metrics), &newer.known,
                                 &message) == BROACH_NOT_FOUND);
  CHECK(broach_metrics_event(metrics, 1000, NULL, &message) == BROACH_INVALID_ARGUMENT);
  broach_metrics_destroy(metrics);
  broach_runtime_destroy(runtime);
}

static void test_null(void) {
  broach_metrics* metrics = NULL;
  CHECK(broach_metrics_read(NULL, &metrics, &message) == BROACH_INVALID_ARGUMENT);
  CHECK(broach_metrics_read(NULL, NULL, NULL) == BROACH_INVALID_ARGUMENT);
  CHECK(broach_metrics_histogram_count(NULL) == 0);
  CHECK(broach_metrics_event_count(NULL) == 0);
  CHECK(strcmp(broach_metrics_prometheus(NULL), "") == 0);
  broach_metrics_destroy(NULL);
}

static void test_bounds(void) {
  CHECK(fabs(broach_metrics_bucket_bound(0) - 1e-6) < 1e-12);
  CHECK(fabs(broach_metrics_bucket_bound(10) - 1024e-6) < 1e-9);
  CHECK(isinf(broach_metrics_bucket_bound(BROACH_METRIC_BUCKETS - 1)));
  CHECK(isinf(broach_metrics_bucket_bound(1000)));
}

int main(void) {
  test_null();
  test_bounds();
  test_reading();
  test_sizes();
  printf("%d checks, %d failed\n", checks, failures);
  return failures == 0 ? 0 : 1;
}
