#pragma once

#include <dlfcn.h>

#include <initializer_list>
#include <string>
#include <utility>

#include "broach/result.hpp"

namespace broach::rtc {

/// A function pointer to fill in, and the name it is exported under.
struct Symbol {
  template <class Function>
  Symbol(Function*& pointer, const char* exported_as)
      : slot(reinterpret_cast<void**>(&pointer)), name(exported_as) {}

  void** slot;
  const char* name;
};

/// A library opened at run time. It stays mapped until the process ends: compilers start threads
/// and register exit handlers that do not survive being unmapped.
class SharedLibrary {
 public:
  /// Errors:  kCompilerMissing with the loader's words.
  static Result<SharedLibrary> open(const std::string& path) {
    void* handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) return Error{ErrorCode::kCompilerMissing, ::dlerror(), ""};
    return SharedLibrary(handle, path);
  }

  /// Errors:  kCompilerMissing naming the library and the first function that it lacks.
  Result<void> load(std::initializer_list<Symbol> symbols) const {
    for (const Symbol& symbol : symbols) {
      *symbol.slot = ::dlsym(handle_, symbol.name);
      if (*symbol.slot == nullptr) {
        return Error{ErrorCode::kCompilerMissing, path_ + " has no function " + symbol.name, ""};
      }
    }
    return {};
  }

 private:
  SharedLibrary(void* handle, std::string path) : handle_(handle), path_(std::move(path)) {}

  void* handle_;
  std::string path_;
};

}  // namespace broach::rtc
