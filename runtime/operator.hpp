#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "broach/result.hpp"
#include "cache/key.hpp"
#include "runtime/device.hpp"
#include "specializer/plan.hpp"
#include "specializer/shape.hpp"

namespace broach::runtime {

/// How the functions of a loaded plan are launched. Each operator of a family derives its own.
///
/// Threads: any.
class Launch {
 public:
  virtual ~Launch() = default;
};

/// A loaded plan, as a launch is made of it.
///
/// Owns:    nothing; the module outlives the launch.
struct LaunchParts {
  const specializer::Shape& served;
  const specializer::Plan& plan;
  Module& module;
  std::uint32_t multiprocessors;  ///< The device's, by which a launch may spread its work.
  const specializer::Target& target;
  std::span<const LaunchLimits> limits;  ///< One a plan entry, as the binary states them.
};

/// Picks a loaded plan's functions out of its module.
///
/// Errors:  kInternal when the plan's entries are not what the launch knows.
using MakeLaunch = Result<std::unique_ptr<const Launch>> (*)(const LaunchParts& parts);

/// A loaded operator. Handles share it; the Runtime that made it keeps it too.
///
/// Under first use `background` it begins with the generic kernel and is promoted once. The generic
/// one stays loaded: a captured graph may hold it.
///
/// Threads: a launch reads `serving` alone; the promotion writes `promoted` before it.
/// Owns:    the loaded modules; the device outlives them.
struct Operator {
  struct Loaded {
    cache::Key key;
    std::unique_ptr<Module> module;
    std::unique_ptr<const Launch> launch;
    std::string layer = {};  ///< The name of the one that had the binary.
    bool compiled = false;   ///< By this process.
    std::vector<LaunchLimits> limits = {};
  };

  Operator(const specializer::Shape& of, std::shared_ptr<Device> on, Loaded loaded)
      : shape(of), device(std::move(on)), first(std::move(loaded)), serving(first.launch.get()) {}

  /// What launches now, as the operator's own MakeLaunch made it.
  template <class Made>
  const Made& launch() const noexcept {
    return static_cast<const Made&>(*serving.load(std::memory_order_acquire));
  }

  /// What serves now, with the binary that it came from.
  const Loaded& loaded() const noexcept {
    return serving.load(std::memory_order_acquire) == first.launch.get() ? first : promoted;
  }
  bool is_generic() const noexcept { return began_generic && &loaded() == &first; }

  specializer::Shape shape;  ///< As it is served: with every default replaced.
  std::shared_ptr<Device> device;
  Loaded first;
  Loaded promoted;
  bool began_generic = false;  ///< `first` is the generic kernel.
  std::atomic<const Launch*> serving;
};

}  // namespace broach::runtime
