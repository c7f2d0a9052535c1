#pragma once

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <functional>

namespace broach::bench {

/// Launches recorded once and replayed by the driver, timed between two events: what the device
/// needs, without the host's side of a launch. Ends the program when a call fails.
///
/// Threads: one.
/// Owns:    a stream, a graph and two events of device 0's primary context, which is current for
///          as long as it lives.
class CudaGraph {
 public:
  CudaGraph() : library_(dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL)) {
    void* context = nullptr;
    must<int(void**, int)>("cuDevicePrimaryCtxRetain", &context, 0);
    must<int(void*)>("cuCtxPushCurrent_v2", context);
    must<int(void**, unsigned)>("cuStreamCreate", &stream_, 1U);
    must<int(void**, unsigned)>("cuEventCreate", &start_, 0U);
    must<int(void**, unsigned)>("cuEventCreate", &end_, 0U);
  }
  ~CudaGraph() {
    if (executable_ != nullptr) call<int(void*)>("cuGraphExecDestroy", executable_);
    if (graph_ != nullptr) call<int(void*)>("cuGraphDestroy", graph_);
    call<int(void*)>("cuEventDestroy_v2", start_);
    call<int(void*)>("cuEventDestroy_v2", end_);
    call<int(void*)>("cuStreamDestroy_v2", stream_);
    void* popped = nullptr;
    call<int(void**)>("cuCtxPopCurrent_v2", &popped);
    call<int(int)>("cuDevicePrimaryCtxRelease_v2", 0);
  }
  CudaGraph(const CudaGraph&) = delete;
  CudaGraph& operator=(const CudaGraph&) = delete;

  /// Captures what `launch` sends to the stream that it is given. Once.
  void record(const std::function<void(void* stream)>& launch) {
    constexpr int kGlobalMode = 0;
    must<int(void*, int)>("cuStreamBeginCapture_v2", stream_, kGlobalMode);
    launch(stream_);
    must<int(void*, void**)>("cuStreamEndCapture", stream_, &graph_);
    must<int(void**, void*, unsigned long long)>("cuGraphInstantiateWithFlags", &executable_,
                                                 graph_, 0ULL);
  }

  /// Microseconds of one replay, by the device's clock.
  double replay_us() {
    must<int(void*, void*)>("cuEventRecord", start_, stream_);
    must<int(void*, void*)>("cuGraphLaunch", executable_, stream_);
    must<int(void*, void*)>("cuEventRecord", end_, stream_);
    must<int(void*)>("cuEventSynchronize", end_);
    float milliseconds = 0;
    must<int(float*, void*, void*)>("cuEventElapsedTime", &milliseconds, start_, end_);
    return static_cast<double>(milliseconds) * 1e3;
  }

 private:
  template <class Signature, class... Args>
  int call(const char* name, Args... args) const noexcept {
    auto* entry =
        library_ == nullptr ? nullptr : reinterpret_cast<Signature*>(dlsym(library_, name));
    return entry == nullptr ? -1 : entry(args...);
  }
  template <class Signature, class... Args>
  void must(const char* name, Args... args) const {
    const int status = call<Signature>(name, args...);
    if (status == 0) return;
    std::fprintf(stderr, "%s failed with %d\n", name, status);
    std::exit(1);
  }

  void* library_;
  void* stream_ = nullptr;
  void* start_ = nullptr;
  void* end_ = nullptr;
  void* graph_ = nullptr;
  void* executable_ = nullptr;
};

}  // namespace broach::bench
