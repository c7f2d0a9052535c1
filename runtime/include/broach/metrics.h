#ifndef BROACH_METRICS_H
#define BROACH_METRICS_H

/* What a runtime has counted and timed, for engines that export it. Conventions: broach.h. */

#include "broach/broach.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A reading of one moment. Its strings live as long as it does. */
typedef struct broach_metrics broach_metrics;

enum { BROACH_METRIC_BUCKETS = 32 };

/* How often something happened since the runtime was made. */
typedef struct broach_event_count {
  size_t size;      /* In: sizeof this structure. The other fields are written. */
  const char* name; /* "published", "store_failed_enospc" */
  uint64_t count;
} broach_event_count;

/* How long one kind of work took, apart by the layer that answered or by how it ended. */
typedef struct broach_duration_histogram {
  size_t size;           /* In: sizeof this structure. The other fields are written. */
  const char* operation; /* "look_up", "wait", "compile", "publish", "load" */
  const char* cause;     /* "memory", "user", "miss"; "done", "rejected", "timed_out" */
  uint64_t count;
  double sum_seconds;
  uint64_t buckets[BROACH_METRIC_BUCKETS]; /* Each by itself, not summed up. */
} broach_duration_histogram;

/* Reads the metrics of a runtime; launches of an operator add nothing to them. */
BROACH_C_API broach_status broach_metrics_read(const broach_runtime* runtime,
                                               broach_metrics** metrics, broach_message* message);
BROACH_C_API void broach_metrics_destroy(broach_metrics* metrics);

/* The events that happened, by index below the count. BROACH_NOT_FOUND beyond it. */
BROACH_C_API size_t broach_metrics_event_count(const broach_metrics* metrics);
BROACH_C_API broach_status broach_metrics_event(const broach_metrics* metrics, size_t index,
                                                broach_event_count* event, broach_message* message);

/* Every histogram, also of what never happened. */
BROACH_C_API size_t broach_metrics_histogram_count(const broach_metrics* metrics);
BROACH_C_API broach_status broach_metrics_histogram(const broach_metrics* metrics, size_t index,
                                                    broach_duration_histogram* histogram,
                                                    broach_message* message);

/* The largest duration, in seconds, that a bucket holds; infinite from the last on. */
BROACH_C_API double broach_metrics_bucket_bound(size_t bucket);

/* The whole reading in Prometheus's text exposition format; "" for NULL. */
BROACH_C_API const char* broach_metrics_prometheus(const broach_metrics* metrics);

#ifdef __cplusplus
}
#endif

#endif
