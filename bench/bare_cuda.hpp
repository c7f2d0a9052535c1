#pragma once

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <vector>

#include "kernel_src/window_rows/params.h"
#include "runtime/cuda/driver.hpp"
#include "specializer/plan.hpp"

namespace broach::bench {

/// A plan's functions launched by the driver's own call and nothing else, in the primary context of
/// device 0, which it leaves current. Ends the program when a call fails.
///
/// Threads: one.
class BareCuda {
 public:
  BareCuda(const specializer::Plan& plan, std::span<const std::byte> binary)
      : cu_(*opened()), plan_(plan) {
    using runtime::cuda::FunctionAttribute;
    runtime::cuda::Context context = nullptr;
    runtime::cuda::ModuleHandle module = nullptr;
    must(cu_.init(0), "cuInit");
    must(cu_.primary_retain(&context, 0), "cuDevicePrimaryCtxRetain");
    must(cu_.context_push(context), "cuCtxPushCurrent");
    must(cu_.module_load(&module, binary.data(), 0, nullptr, nullptr), "cuModuleLoadDataEx");
    for (const specializer::KernelEntry& entry : plan.entries) {
      runtime::cuda::FunctionHandle function = nullptr;
      must(cu_.module_get_function(&function, module, entry.function.c_str()),
           "cuModuleGetFunction");
      must(cu_.function_set_attribute(function, FunctionAttribute::kMaxDynamicShared,
                                      static_cast<int>(entry.dynamic_shared_bytes)),
           "cuFuncSetAttribute");
      functions_.push_back(function);
    }
  }

  bool launch(std::size_t entry, unsigned x, unsigned y, unsigned z,
              BroachWindowRowsDecode params) const {
    void* pointers[] = {&params};
    return cu_.launch_kernel(functions_[entry], x, y, z, plan_.entries[entry].block_threads, 1, 1,
                             plan_.entries[entry].dynamic_shared_bytes, nullptr, pointers,
                             nullptr) == runtime::cuda::kSuccess;
  }

 private:
  static const runtime::cuda::Driver* opened() {
    static const auto driver = runtime::cuda::Driver::open();
    if (!driver) {
      std::fprintf(stderr, "%s\n", driver.error().message.c_str());
      std::exit(1);
    }
    return driver->get();
  }
  void must(runtime::cuda::Status status, const char* call) const {
    if (status == runtime::cuda::kSuccess) return;
    std::fprintf(stderr, "%s: %s\n", call, cu_.words(status).c_str());
    std::exit(1);
  }

  const runtime::cuda::Driver& cu_;
  specializer::Plan plan_;
  std::vector<runtime::cuda::FunctionHandle> functions_;
};

}  // namespace broach::bench
