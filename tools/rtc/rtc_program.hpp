#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tools/rtc/compiler.hpp"

namespace broach::rtc {

/// Functions of a run-time compiler's C interface; NVRTC's and hiprtc's have one form.
struct ProgramApi {
  using Program = struct ProgramState*;

  const char* (*error_string)(int) = nullptr;
  int (*version)(int* major, int* minor) = nullptr;
  int (*create)(Program*, const char* source, const char* name, int headers,
                const char* const* header_bytes, const char* const* header_names) = nullptr;
  int (*destroy)(Program*) = nullptr;
  int (*compile)(Program, int options, const char* const* option) = nullptr;
  int (*log_size)(Program, std::size_t*) = nullptr;
  int (*log)(Program, char*) = nullptr;
  int (*binary_size)(Program, std::size_t*) = nullptr;
  int (*binary)(Program, char*) = nullptr;
  int (*add_name)(Program, const char* expression) = nullptr;
  int (*lowered_name)(Program, const char* expression, const char** name) = nullptr;
};

/// Compiles with virtual headers and no include path, and asks what the functions are called that
/// `names` has C++ for.
///
/// Errors:  kCompileFailed, kOutOfMemory as Compiler::compile.
Result<Compiled> compile_program(const ProgramApi& api, const std::vector<Source>& sources,
                                 const std::vector<std::string>& options,
                                 const std::vector<std::string>& names = {});

/// `options` with `prefix + arch` put first, unless one of them starts with `prefix`.
std::vector<std::string> with_arch(const std::vector<std::string>& options, std::string_view prefix,
                                   const std::string& arch);

/// Images loaded in this process whose file name starts with one of `stems`, in that order.
std::vector<Image> images_named(const std::vector<std::string_view>& stems);

}  // namespace broach::rtc
