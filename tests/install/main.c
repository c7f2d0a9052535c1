/* A C program of someone else's: makes an operator on the host through the installed header. */
#include <broach/window_rows.h>
#include <stdio.h>
#include <string.h>

int main(void) {
  char text[4096];
  broach_message message = {text, sizeof text, 0};
  broach_runtime* runtime = NULL;
  broach_window_rows_decode* op = NULL;
  broach_window_rows_shape shape;
  memset(&shape, 0, sizeof shape);
  shape.size = sizeof shape;
  shape.head_dim = 64;
  shape.gqa_ratio = 2;
  shape.arith = BROACH_ARITH_CHUNK256;
  if (broach_runtime_create(NULL, &runtime, &message) != BROACH_OK ||
      broach_window_rows_decode_create(runtime, &shape, NULL, &op, &message) != BROACH_OK) {
    fprintf(stderr, "%s\n", text);
    return 1;
  }
  /* 4 rows, 2 heads, one chunk of keys: a maximum, a sum and 64 values each. */
  if (broach_window_rows_decode_workspace_bytes(op, 4, 1, 256) !=
      4 * 2 * (64 + 2) * sizeof(float)) {
    fprintf(stderr, "workspace of %zu bytes\n",
            broach_window_rows_decode_workspace_bytes(op, 4, 1, 256));
    return 1;
  }
  broach_window_rows_decode_destroy(op);
  printf("broach %s on %s\n", broach_version(), broach_runtime_target_name(runtime));
  broach_runtime_destroy(runtime);
  return 0;
}
