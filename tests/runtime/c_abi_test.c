/* The C interface from C, on the host device: every function, the size-first structures, the
 * message buffer, a decode and a prefill whose answers are known. Exit status 0 only when every
 * check held.
 */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "broach/window_rows.h"
#include "c_check.h"

static char text[4096];
static broach_message message = {text, sizeof text, 0};

enum { kHeadDim = 64, kKeys = 3, kSlots = 2, kRows = 2 };

static broach_window_rows_shape linear_shape(void) {
  broach_window_rows_shape shape;
  memset(&shape, 0, sizeof shape);
  shape.size = sizeof shape;
  shape.head_dim = kHeadDim;
  shape.gqa_ratio = 1;
  shape.kv_layout = BROACH_KV_LINEAR;
  shape.arith = BROACH_ARITH_CHUNK256;
  return shape;
}

static void test_words(void) {
  CHECK(strcmp(broach_version(), BROACH_EXPECTED_VERSION) == 0);
  CHECK(strcmp(BROACH_VERSION, BROACH_EXPECTED_VERSION) == 0);
  CHECK(BROACH_VERSION_MAJOR >= 0 && BROACH_VERSION_MINOR >= 0 && BROACH_VERSION_PATCH >= 0);
  CHECK(strcmp(broach_status_name(BROACH_OK), "ok") == 0);
  CHECK(strcmp(broach_status_name(BROACH_NOT_WARMED), "not_warmed") == 0);
  CHECK(strcmp(broach_status_name(9999), "unknown") == 0);
}

static void test_null(void) {
  CHECK(broach_runtime_create(NULL, NULL, &message) == BROACH_INVALID_ARGUMENT);
  CHECK(strcmp(text, "runtime is NULL") == 0);
  CHECK(broach_window_rows_decode_create(NULL, NULL, NULL, NULL, NULL) == BROACH_INVALID_ARGUMENT);
  CHECK(broach_window_rows_decode_launch(NULL, NULL, NULL, &message) == BROACH_INVALID_ARGUMENT);
  CHECK(broach_window_rows_prefill_launch(NULL, NULL, NULL, &message) == BROACH_INVALID_ARGUMENT);
  CHECK(broach_window_rows_decode_workspace_bytes(NULL, 1, 1, 1) == 0);
  CHECK(strcmp(broach_runtime_device_name(NULL), "") == 0);
  CHECK(broach_window_rows_prefill_create(NULL, NULL, NULL, NULL, NULL) == BROACH_INVALID_ARGUMENT);
  broach_runtime_destroy(NULL);
  broach_window_rows_prefill_destroy(NULL);
  broach_window_rows_decode_destroy(NULL);
}

static void test_sizes(void) {
  struct {
    broach_runtime_options known;
    uint64_t later;
  } options;
  broach_runtime* runtime = (broach_runtime*)&options;
  int i;
  memset(&options, 0, sizeof options);
  options.known.device = "host";
  CHECK(broach_runtime_create(&options.known, &runtime, &message) == BROACH_INVALID_ARGUMENT);
  CHECK(strstr(text, "broach_runtime_options.size is 0") != NULL);
  CHECK(runtime == NULL);

  /* A newer header's field: fine while it is zero, told when it is set. */
  options.known.size = sizeof options;
  CHECK(broach_runtime_create(&options.known, &runtime, &message) == BROACH_OK);
  broach_runtime_destroy(runtime);
  options.later = 1;
  CHECK(broach_runtime_create(&options.known, &runtime, &message) == BROACH_UNSUPPORTED);

  /* An older header's structure ends before what came later, which is not read. */
  options.known.size = offsetof(broach_runtime_options, remotes);
  options.known.remote_secret = "beyond the end";
  CHECK(broach_runtime_create(&options.known, &runtime, &message) == BROACH_OK);
  broach_runtime_destroy(runtime);
  options.known.size = sizeof options.known;
  CHECK(broach_runtime_create(&options.known, &runtime, &message) == BROACH_INVALID_ARGUMENT);
  CHECK(strstr(text, "remote_secret is one remote's; 0 are named") != NULL);
  options.known.remote_secret = NULL;

  /* A size that no release's structure has is refused before anything behind it is read. */
  for (i = 0; i < 3; ++i) {
    static const size_t sizes[] = {1025, 1 << 20, SIZE_MAX};
    options.known.size = sizes[i];
    CHECK(broach_runtime_create(&options.known, &runtime, &message) == BROACH_INVALID_ARGUMENT);
    CHECK(strstr(text, "broach_runtime_options.size is") != NULL);
  }
  options.known.size = sizeof options.known;

  options.known.first_use = 77;
  CHECK(broach_runtime_create(&options.known, &runtime, &message) == BROACH_INVALID_ARGUMENT);
  CHECK(strstr(text, "first_use is 77") != NULL);
  options.known.first_use = BROACH_FIRST_USE_DEFAULT;
  options.known.device = "tpu";
  CHECK(broach_runtime_create(&options.known, &runtime, &message) == BROACH_INVALID_ARGUMENT);
  CHECK(strstr(text, "\"tpu\"") != NULL);
}

static void test_message(void) {
  char small[8];
  broach_message cut = {small, sizeof small, 0};
  broach_message counted = {NULL, 0, 0};
  memset(small, 'x', sizeof small);
  CHECK(broach_runtime_create(NULL, NULL, &cut) == BROACH_INVALID_ARGUMENT);
  CHECK(strcmp(small, "runtime") == 0);
  CHECK(cut.length == strlen("runtime is NULL"));
  CHECK(broach_runtime_create(NULL, NULL, &counted) == BROACH_INVALID_ARGUMENT);
  CHECK(counted.length == cut.length);
}

static void test_shapes(broach_runtime* runtime) {
  broach_window_rows_decode* op = NULL;
  broach_window_rows_shape shape = linear_shape();
  shape.head_dim = 100;
  CHECK(broach_window_rows_decode_create(runtime, &shape, NULL, &op, &message) ==
        BROACH_INVALID_ARGUMENT);
  CHECK(strstr(text, "head_dim") != NULL && strstr(text, "100") != NULL);
  shape = linear_shape();
  shape.dtype = 9;
  CHECK(broach_window_rows_decode_create(runtime, &shape, NULL, &op, &message) ==
        BROACH_INVALID_ARGUMENT);
  CHECK(strstr(text, "dtype is 9") != NULL);
  shape = linear_shape();
  shape.reserved = 1;
  CHECK(broach_window_rows_decode_create(runtime, &shape, NULL, &op, &message) ==
        BROACH_INVALID_ARGUMENT);
  shape = linear_shape();
  shape.size = SIZE_MAX;
  CHECK(broach_window_rows_decode_create(runtime, &shape, NULL, &op, &message) ==
        BROACH_INVALID_ARGUMENT);
  shape = linear_shape();
  shape.size = 4;
  CHECK(broach_window_rows_decode_create(runtime, &shape, NULL, &op, &message) ==
        BROACH_INVALID_ARGUMENT);
  CHECK(op == NULL);
}

static uint16_t bf16(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return (uint16_t)(bits >> 16);
}

static float from_bf16(uint16_t half) {
  const uint32_t bits = (uint32_t)half << 16;
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

/* Slot 0 is read at position 0: one key, so the output is its value. Slot 1 is read at position 2
 * with equal scores: the output is the mean of three values, 4. */
static void test_decode(broach_runtime* runtime) {
  static _Alignas(16) uint16_t q[kRows][kHeadDim], out[kRows][kHeadDim];
  static _Alignas(16) uint16_t k[kSlots][kKeys][kHeadDim], v[kSlots][kKeys][kHeadDim];
  const int32_t positions[kRows] = {2, 0};
  const int32_t slots[kRows] = {1, 0};
  const float values[kSlots][kKeys] = {{8, 100, 100}, {2, 4, 6}};
  broach_window_rows_shape shape = linear_shape();
  broach_window_rows_decode_args args;
  broach_window_rows_decode* op = NULL;
  broach_status status;
  int d, slot, key;

  status = broach_window_rows_decode_create(runtime, &shape, NULL, &op, &message);
  CHECK(status == BROACH_OK);
  if (status != BROACH_OK) {
    printf("%s: %s\n", broach_status_name(status), text);
    return;
  }
  for (d = 0; d < kHeadDim; ++d) {
    q[0][d] = q[1][d] = bf16(0.5F);
    for (slot = 0; slot < kSlots; ++slot) {
      for (key = 0; key < kKeys; ++key) {
        k[slot][key][d] = bf16(0.25F);
        v[slot][key][d] = bf16(values[slot][key]);
      }
    }
  }
  memset(&args, 0, sizeof args);
  args.size = sizeof args;
  args.attention.q = q;
  args.cache.k = k;
  args.cache.v = v;
  args.attention.out = out;
  args.positions = positions;
  args.slots = slots;
  args.attention.rows = kRows;
  args.cache.kv_heads = 1;
  args.cache.slots = kSlots;
  args.cache.length = kKeys;
  args.attention.scale = 0.125F;
  args.attention.q_row_stride = args.attention.q_head_stride = args.attention.out_row_stride =
      args.attention.out_head_stride = kHeadDim;
  args.cache.k_position_stride = args.cache.v_position_stride = kHeadDim;
  args.cache.k_slot_stride = args.cache.v_slot_stride = kKeys * kHeadDim;

  CHECK(broach_window_rows_decode_launch(op, &args, NULL, &message) == BROACH_INVALID_ARGUMENT);
  CHECK(strstr(text, "workspace_bytes is 0") != NULL);
  args.workspace_bytes = broach_window_rows_decode_workspace_bytes(op, kRows, 1, kKeys);
  CHECK(args.workspace_bytes == kRows * (kHeadDim + 2) * sizeof(float));
  /* 2^63 bytes and more are counted, not wrapped. */
  CHECK(broach_window_rows_decode_workspace_bytes(op, 65535, 65535, INT32_MAX) > SIZE_MAX / 2);
  args.workspace = aligned_alloc(64, (args.workspace_bytes + 63) / 64 * 64);
  args.attention.scale = NAN;
  CHECK(broach_window_rows_decode_launch(op, &args, NULL, &message) == BROACH_INVALID_ARGUMENT);
  CHECK(strstr(text, "attention.scale is nan") != NULL);
  args.attention.scale = 0.125F;
  args.reserved = 1;
  CHECK(broach_window_rows_decode_launch(op, &args, NULL, &message) == BROACH_INVALID_ARGUMENT);
  args.reserved = 0;

  status = broach_window_rows_decode_launch(op, &args, NULL, &message);
  CHECK(status == BROACH_OK);
  if (status != BROACH_OK) printf("%s: %s\n", broach_status_name(status), text);
  for (d = 0; d < kHeadDim; ++d) {
    CHECK(from_bf16(out[0][d]) == 4.0F);
    CHECK(from_bf16(out[1][d]) == 8.0F);
  }
  free(args.workspace);
  broach_window_rows_decode_destroy(op);
}

enum { kSequences = 2, kPrefillRows = 4 };

/* Equal scores, so that an output is the mean of the values its row sees. Sequence 0 reads the
 * three positions of slot 1 from its start; sequence 1 reads one row at position 1 of slot 0. */
static void test_prefill(broach_runtime* runtime) {
  static _Alignas(16) uint16_t q[kPrefillRows][kHeadDim], out[kPrefillRows][kHeadDim];
  static _Alignas(16) uint16_t k[kSlots][kKeys][kHeadDim], v[kSlots][kKeys][kHeadDim];
  const int32_t positions[kSequences] = {0, 1};
  const int32_t slots[kSequences] = {1, 0};
  const int32_t offsets[kSequences + 1] = {0, 3, kPrefillRows};
  const int32_t hi[kPrefillRows] = {2, 1, 2, 1}; /* Row 0 sees the rows after it, as an image's. */
  const float values[kSlots][kKeys] = {{8, 100, 1000}, {2, 4, 6}};
  const float causal[kPrefillRows] = {2, 3, 4, 54};
  const float with_hi[kPrefillRows] = {4, 3, 4, 54};
  broach_window_rows_shape shape = linear_shape();
  struct {
    broach_window_rows_prefill_args known;
    uint64_t later;
  } larger;
  broach_window_rows_prefill_args* const args = &larger.known;
  broach_window_rows_prefill* op = NULL;
  broach_status status;
  int d, slot, key, row;

  shape.arith = BROACH_ARITH_TILE64;
  status = broach_window_rows_prefill_create(runtime, &shape, NULL, &op, &message);
  CHECK(status == BROACH_OK);
  if (status != BROACH_OK) {
    printf("%s: %s\n", broach_status_name(status), text);
    return;
  }
  for (d = 0; d < kHeadDim; ++d) {
    for (row = 0; row < kPrefillRows; ++row) q[row][d] = bf16(0.5F);
    for (slot = 0; slot < kSlots; ++slot) {
      for (key = 0; key < kKeys; ++key) {
        k[slot][key][d] = bf16(0.25F);
        v[slot][key][d] = bf16(values[slot][key]);
      }
    }
  }
  memset(&larger, 0, sizeof larger);
  CHECK(broach_window_rows_prefill_launch(op, NULL, NULL, &message) == BROACH_INVALID_ARGUMENT);
  CHECK(broach_window_rows_prefill_launch(op, args, NULL, &message) == BROACH_INVALID_ARGUMENT);
  CHECK(strstr(text, "broach_window_rows_prefill_args.size is 0") != NULL);
  args->size = sizeof larger;
  larger.later = 1;
  CHECK(broach_window_rows_prefill_launch(op, args, NULL, &message) == BROACH_UNSUPPORTED);
  larger.later = 0;
  args->attention.q = q;
  args->cache.k = k;
  args->cache.v = v;
  args->attention.out = out;
  args->positions = positions;
  args->slots = slots;
  args->offsets = offsets;
  args->attention.rows = kPrefillRows;
  args->sequences = kPrefillRows + 1;
  args->cache.kv_heads = 1;
  args->cache.slots = kSlots;
  args->cache.length = kKeys;
  args->attention.scale = 0.125F;
  args->attention.q_row_stride = args->attention.q_head_stride = kHeadDim;
  args->attention.out_row_stride = args->attention.out_head_stride = kHeadDim;
  args->cache.k_position_stride = args->cache.v_position_stride = kHeadDim;
  args->cache.k_slot_stride = args->cache.v_slot_stride = kKeys * kHeadDim;
  CHECK(broach_window_rows_prefill_launch(op, args, NULL, &message) == BROACH_INVALID_ARGUMENT);
  CHECK(strstr(text, "sequences is 5") != NULL);
  args->sequences = kSequences;

  status = broach_window_rows_prefill_launch(op, args, NULL, &message);
  CHECK(status == BROACH_OK);
  if (status != BROACH_OK) printf("%s: %s\n", broach_status_name(status), text);
  for (row = 0; row < kPrefillRows; ++row) {
    for (d = 0; d < kHeadDim; ++d) CHECK(from_bf16(out[row][d]) == causal[row]);
  }
  args->hi = hi;
  CHECK(broach_window_rows_prefill_launch(op, args, NULL, &message) == BROACH_OK);
  for (row = 0; row < kPrefillRows; ++row) {
    for (d = 0; d < kHeadDim; ++d) CHECK(from_bf16(out[row][d]) == with_hi[row]);
  }
  broach_window_rows_prefill_destroy(op);
}

int main(void) {
  broach_runtime_options options;
  broach_runtime* runtime = NULL;
  broach_status status;
  test_words();
  test_null();
  test_message();
  test_sizes();
  memset(&options, 0, sizeof options);
  options.size = sizeof options;
  options.device = "host";
  status = broach_runtime_create(&options, &runtime, &message);
  CHECK(status == BROACH_OK);
  if (status == BROACH_OK) {
    CHECK(strncmp(broach_runtime_target_name(runtime), "host-", 5) == 0);
    CHECK(strlen(broach_runtime_device_name(runtime)) > 0);
    test_shapes(runtime);
    test_decode(runtime);
    test_prefill(runtime);
  } else {
    printf("%s: %s\n", broach_status_name(status), text);
  }
  broach_runtime_destroy(runtime);
  printf("%d checks, %d do not hold\n", checks, failures);
  return failures == 0 ? 0 : 1;
}
