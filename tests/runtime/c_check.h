#pragma once

/* Checks of a C test program, which counts them and goes on. */
#include <stdio.h>

static int checks = 0;
static int failures = 0;

#define CHECK(condition)                                                    \
  do {                                                                      \
    ++checks;                                                               \
    if (!(condition)) {                                                     \
      ++failures;                                                           \
      printf("%s:%d: does not hold: %s\n", __FILE__, __LINE__, #condition); \
    }                                                                       \
  } while (0)
