#pragma once

#include <memory>

#include "broach/result.hpp"
#include "specializer/compile/protocol.hpp"

namespace broach::rtc {

using specializer::rtc::Compiled;
using specializer::rtc::CompileRequest;
using specializer::rtc::Image;
using specializer::rtc::Opened;
using specializer::rtc::OpenRequest;
using specializer::rtc::Source;

/// The one compiler that a worker process serves.
///
/// Threads: one at a time.
class Compiler {
 public:
  virtual ~Compiler() = default;

  /// What was loaded.
  virtual const Opened& opened() const = 0;

  /// Errors:  kCompileFailed with the first complaint in the message and the whole log in the
  ///          detail; kOutOfMemory.
  virtual Result<Compiled> compile(const CompileRequest& request) = 0;
};

/// Errors (all three): kCompilerMissing with the loader's or the system's words.
Result<std::unique_ptr<Compiler>> open_nvrtc(const OpenRequest& request);
Result<std::unique_ptr<Compiler>> open_hiprtc(const OpenRequest& request);
Result<std::unique_ptr<Compiler>> open_host_cxx(const OpenRequest& request);

}  // namespace broach::rtc
