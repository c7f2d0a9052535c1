#include "specializer/own/standard_headers.hpp"

#include <utility>

namespace broach::specializer::own {
namespace {

// The toolkits' own headers define some of these in the same words, which is no redefinition.
constexpr const char* kLimits = R"(#pragma once
#ifndef CHAR_BIT
#define CHAR_BIT 8
#define SCHAR_MIN (-128)
#define SCHAR_MAX 127
#define UCHAR_MAX 255
#define SHRT_MIN (-32768)
#define SHRT_MAX 32767
#define USHRT_MAX 65535
#define INT_MIN (-2147483647 - 1)
#define INT_MAX 2147483647
#define UINT_MAX 4294967295U
#define LONG_MAX 9223372036854775807L
#define LONG_MIN (-LONG_MAX - 1)
#define ULONG_MAX 18446744073709551615UL
#define LLONG_MAX 9223372036854775807LL
#define LLONG_MIN (-LLONG_MAX - 1)
#define ULLONG_MAX 18446744073709551615ULL
#endif
)";

constexpr const char* kIntegers = R"(#pragma once
#include <limits.h>
typedef signed char int8_t;
typedef signed short int16_t;
typedef signed int int32_t;
typedef unsigned char uint8_t;
typedef unsigned short uint16_t;
typedef unsigned int uint32_t;
#if defined(__CUDACC_RTC__) || defined(__HIPCC_RTC__)
typedef signed long long int64_t;
typedef unsigned long long uint64_t;
#else
typedef __INT64_TYPE__ int64_t;
typedef __UINT64_TYPE__ uint64_t;
#endif
typedef int64_t intptr_t;
typedef uint64_t uintptr_t;
typedef int64_t intmax_t;
typedef uint64_t uintmax_t;
#ifndef INT8_MIN
#define INT8_MIN SCHAR_MIN
#define INT16_MIN SHRT_MIN
#define INT32_MIN INT_MIN
#define INT64_MIN LLONG_MIN
#define INT8_MAX SCHAR_MAX
#define INT16_MAX SHRT_MAX
#define INT32_MAX INT_MAX
#define INT64_MAX LLONG_MAX
#define UINT8_MAX UCHAR_MAX
#define UINT16_MAX USHRT_MAX
#define UINT32_MAX UINT_MAX
#define UINT64_MAX ULLONG_MAX
#endif
)";

constexpr const char* kStdIntegers = R"(#pragma once
#include <stdint.h>
namespace std {
using ::int16_t;
using ::int32_t;
using ::int64_t;
using ::int8_t;
using ::intptr_t;
using ::uint16_t;
using ::uint32_t;
using ::uint64_t;
using ::uint8_t;
using ::uintptr_t;
}  // namespace std
)";

constexpr const char* kSizes = R"(#pragma once
#if !defined(__CUDACC_RTC__) && !defined(__HIPCC_RTC__)
typedef __SIZE_TYPE__ size_t;
typedef __PTRDIFF_TYPE__ ptrdiff_t;
#endif
#ifndef NULL
#define NULL 0
#endif
#ifndef offsetof
#if defined(__CUDACC_RTC__)
#define offsetof(type, member) ((size_t) & (((type*)0)->member))
#else
#define offsetof(type, member) __builtin_offsetof(type, member)
#endif
#endif
)";

constexpr const char* kStdSizes = R"(#pragma once
#include <stddef.h>
namespace std {
using size_t = decltype(sizeof(0));
using ptrdiff_t = decltype((char*)0 - (char*)0);
using nullptr_t = decltype(nullptr);
}  // namespace std
)";

constexpr const char* kFloats = R"(#pragma once
#ifndef FLT_MAX
#define FLT_RADIX 2
#define FLT_MANT_DIG 24
#define FLT_DIG 6
#define FLT_MAX 3.40282347e+38f
#define FLT_MIN 1.17549435e-38f
#define FLT_EPSILON 1.19209290e-07f
#define DBL_MANT_DIG 53
#define DBL_DIG 15
#define DBL_MAX 1.7976931348623157e+308
#define DBL_MIN 2.2250738585072014e-308
#define DBL_EPSILON 2.2204460492503131e-16
#endif
)";

constexpr const char* kMath = R"(#pragma once
#ifndef INFINITY
#if defined(__CUDACC_RTC__)
#define INFINITY __int_as_float(0x7f800000)
#define NAN __int_as_float(0x7fffffff)
#else
#define INFINITY __builtin_inff()
#define NAN __builtin_nanf("")
#endif
#endif
#ifndef HUGE_VALF
#define HUGE_VALF INFINITY
#endif
#ifndef M_PI
#define M_E 2.7182818284590452354
#define M_LOG2E 1.4426950408889634074
#define M_LN2 0.69314718055994530942
#define M_PI 3.14159265358979323846
#define M_SQRT2 1.41421356237309504880
#define M_SQRT1_2 0.70710678118654752440
#endif
)";

constexpr const char* kAssert = R"(#pragma once
#if !defined(__CUDACC_RTC__) && !defined(assert)
#ifdef NDEBUG
#define assert(condition) ((void)0)
#else
#define assert(condition) ((condition) ? (void)0 : __builtin_trap())
#endif
#endif
)";

// The compiler knows their names itself.
constexpr const char* kBuiltIn = "#pragma once\n#include <stddef.h>\n";

}  // namespace

std::shared_ptr<const HeaderPack> standard_headers() {
  static const std::shared_ptr<const HeaderPack> pack =
      HeaderPack::of_files("standard headers", {{"limits.h", kLimits},
                                                {"climits", "#pragma once\n#include <limits.h>\n"},
                                                {"stdint.h", kIntegers},
                                                {"cstdint", kStdIntegers},
                                                {"stddef.h", kSizes},
                                                {"cstddef", kStdSizes},
                                                {"float.h", kFloats},
                                                {"cfloat", "#pragma once\n#include <float.h>\n"},
                                                {"math.h", kMath},
                                                {"cmath", "#pragma once\n#include <math.h>\n"},
                                                {"assert.h", kAssert},
                                                {"cassert", "#pragma once\n#include <assert.h>\n"},
                                                {"stdio.h", kBuiltIn},
                                                {"cstdio", kBuiltIn},
                                                {"string.h", kBuiltIn},
                                                {"cstring", kBuiltIn},
                                                {"stdlib.h", kBuiltIn},
                                                {"cstdlib", kBuiltIn}});
  return pack;
}

}  // namespace broach::specializer::own
