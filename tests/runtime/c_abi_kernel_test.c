/* The C interface of an engine's own kernels, from C: a family from memory, one source, a launch,
 * and what is refused. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "broach/kernel.h"
#include "c_check.h"

static char text[4096];
static broach_message message = {text, sizeof text, 0};

static const char kFamily[] =
    "{\"family\": 1, \"name\": \"acme.add\", \"sources\": [\"add.cuh\"], \"functions\": "
    "[\"acme_add\"],"
    " \"parameters\": [{\"name\": \"step\", \"type\": \"int\", \"range\": [1, 9], \"constant\": "
    "\"kStep\"}],"
    " \"targets\": [\"host\"]}";

static const char kSource[] =
    "#include \"broach/kernel.cuh\"\n"
    "struct Params { int* x; };\n"
    "BROACH_KERNEL(acme_add, 32, Params, broach::NoShared) { params.x[thread.index()] += kStep; "
    "}\n";

typedef struct params {
  int* x;
} params;

static broach_status launch(const broach_kernel* kernel, int* values) {
  params given = {values};
  const broach_kernel_argument argument = {&given, sizeof given};
  broach_kernel_launch_args args;
  memset(&args, 0, sizeof args);
  args.size = sizeof args;
  return broach_kernel_launch(kernel, "acme_add", &args, &argument, 1, NULL, &message);
}

static void check_family(broach_runtime* runtime) {
  broach_kernel_source source;
  broach_kernel_family* family = NULL;
  broach_kernel* kernel = NULL;
  const char* values[] = {"step=4"};
  const char* odd[] = {"step=40"};
  int numbers[32];
  memset(&source, 0, sizeof source);
  source.size = sizeof source;
  source.name = "add.cuh";
  source.bytes = kSource;
  source.byte_count = strlen(kSource);

  CHECK(broach_kernel_family_create("{}", &source, 1, sizeof source, &family, &message) ==
        BROACH_INVALID_ARGUMENT);
  CHECK(family == NULL);
  CHECK(broach_kernel_family_create(kFamily, &source, 0, sizeof source, &family, &message) ==
        BROACH_INVALID_ARGUMENT);
  CHECK(strstr(text, "add.cuh") != NULL);
  CHECK(broach_kernel_family_create(kFamily, &source, 1, sizeof source, &family, &message) ==
        BROACH_OK);
  CHECK(broach_kernel_create(runtime, family, odd, 1, NULL, &kernel, &message) ==
        BROACH_INVALID_ARGUMENT);
  CHECK(strstr(text, "acme.add step=40 is not served; numbers from 1 to 9 are") != NULL);
  CHECK(kernel == NULL);
  CHECK(broach_kernel_create(runtime, NULL, values, 1, NULL, &kernel, &message) ==
        BROACH_INVALID_ARGUMENT);
  CHECK(broach_kernel_create(runtime, family, values, 1, NULL, &kernel, &message) == BROACH_OK);
  if (kernel == NULL) return;
  CHECK(strlen(broach_kernel_key(kernel)) == 32);
  memset(numbers, 0, sizeof numbers);
  CHECK(launch(kernel, numbers) == BROACH_OK);
  CHECK(numbers[0] == 4 && numbers[31] == 4);
  CHECK(broach_kernel_set_symbol(kernel, "nosuch", "x", 1, NULL, &message) == BROACH_NOT_FOUND);
  broach_kernel_destroy(kernel);

  kernel = NULL;
  CHECK(broach_kernel_try_create(runtime, family, values, 1, &kernel, &message) == BROACH_OK);
  CHECK(kernel != NULL);
  broach_kernel_destroy(kernel);
  broach_kernel_family_destroy(family);
}

static void check_source(broach_runtime* runtime) {
  static char source[1024];
  broach_kernel* kernel = NULL;
  int numbers[32];
  snprintf(source, sizeof source, "constexpr int kStep = 7;\n%s", kSource);
  CHECK(broach_kernel_compile(runtime, "acme add", source, &kernel, &message) ==
        BROACH_INVALID_ARGUMENT);
  CHECK(broach_kernel_compile(runtime, "acme_add", "#error no\n", &kernel, &message) ==
        BROACH_COMPILE_FAILED);
  CHECK(broach_kernel_compile(runtime, "acme_add", source, &kernel, &message) == BROACH_OK);
  if (kernel == NULL) return;
  memset(numbers, 0, sizeof numbers);
  CHECK(launch(kernel, numbers) == BROACH_OK);
  CHECK(numbers[31] == 7);
  broach_kernel_destroy(kernel);
}

int main(void) {
  broach_runtime_options options;
  broach_runtime* runtime = NULL;
  broach_kernel_family* family = NULL;
  memset(&options, 0, sizeof options);
  options.size = sizeof options;
  options.device = "host";
  if (broach_runtime_create(&options, &runtime, &message) != BROACH_OK) {
    fprintf(stderr, "no runtime: %s\n", text);
    return 1;
  }
  CHECK(broach_kernel_family_load("/nosuch/x.family.json", &family, &message) == BROACH_NOT_FOUND);
  CHECK(broach_kernel_family_load(NULL, &family, &message) == BROACH_INVALID_ARGUMENT);
  check_family(runtime);
  check_source(runtime);
  broach_kernel_destroy(NULL);
  broach_kernel_family_destroy(NULL);
  broach_runtime_destroy(runtime);
  if (failures == 0) puts("an engine's own kernels by C: as expected");
  return failures == 0 ? 0 : 1;
}
