#pragma once

#include <dlfcn.h>

#include <cstddef>

namespace broach::test {

/// A stream of the current CUDA device, what it captured, and the device's free memory: the parts
/// of the driver that an engine uses and broach does not.
///
/// Threads: one.
/// Owns:    the stream and the graph; a context must be current throughout.
class Capture {
 public:
  Capture() : library_(dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL)) {
    ok_ = call<int(void**, unsigned)>("cuStreamCreate", &stream_, kNonBlocking) == 0;
  }
  ~Capture() {
    if (executable_ != nullptr) call<int(void*)>("cuGraphExecDestroy", executable_);
    if (graph_ != nullptr) call<int(void*)>("cuGraphDestroy", graph_);
    if (stream_ != nullptr) call<int(void*)>("cuStreamDestroy_v2", stream_);
  }
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;

  bool ok() const noexcept { return ok_; }
  void* stream() const noexcept { return stream_; }

  bool begin() {
    return call<int(void*, int)>("cuStreamBeginCapture_v2", stream_, kGlobalMode) == 0;
  }
  bool end() { return call<int(void*, void**)>("cuStreamEndCapture", stream_, &graph_) == 0; }
  std::size_t nodes() {
    std::size_t count = 0;
    call<int(void*, void**, std::size_t*)>("cuGraphGetNodes", graph_, nullptr, &count);
    return count;
  }
  bool instantiate() {
    return call<int(void**, void*, unsigned long long)>("cuGraphInstantiateWithFlags", &executable_,
                                                        graph_, 0ULL) == 0;
  }
  bool replay() {
    return call<int(void*, void*)>("cuGraphLaunch", executable_, stream_) == 0 &&
           call<int(void*)>("cuStreamSynchronize", stream_) == 0;
  }
  std::size_t free_bytes() {
    std::size_t free = 0;
    std::size_t total = 0;
    call<int(std::size_t*, std::size_t*)>("cuMemGetInfo_v2", &free, &total);
    return free;
  }

 private:
  static constexpr unsigned kNonBlocking = 1;
  static constexpr int kGlobalMode = 0;

  template <class Signature, class... Args>
  int call(const char* name, Args... args) {
    auto* entry =
        library_ == nullptr ? nullptr : reinterpret_cast<Signature*>(dlsym(library_, name));
    return entry == nullptr ? -1 : entry(args...);
  }

  void* library_;
  void* stream_ = nullptr;
  void* graph_ = nullptr;
  void* executable_ = nullptr;
  bool ok_ = false;
};

/// Makes the primary context of device 0 current for a scope, as an engine has it.
class PrimaryContext {
 public:
  PrimaryContext() : library_(dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL)) {
    void* context = nullptr;
    ok_ = library_ != nullptr && call<int(unsigned)>("cuInit", 0U) == 0 &&
          call<int(void**, int)>("cuDevicePrimaryCtxRetain", &context, 0) == 0 &&
          call<int(void*)>("cuCtxPushCurrent_v2", context) == 0;
  }
  ~PrimaryContext() {
    void* popped = nullptr;
    if (!ok_) return;
    call<int(void**)>("cuCtxPopCurrent_v2", &popped);
    call<int(int)>("cuDevicePrimaryCtxRelease_v2", 0);
  }
  PrimaryContext(const PrimaryContext&) = delete;
  PrimaryContext& operator=(const PrimaryContext&) = delete;

  bool ok() const noexcept { return ok_; }

 private:
  template <class Signature, class... Args>
  int call(const char* name, Args... args) {
    auto* entry = reinterpret_cast<Signature*>(dlsym(library_, name));
    return entry == nullptr ? -1 : entry(args...);
  }

  void* library_;
  bool ok_ = false;
};

}  // namespace broach::test
