#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

#include "broach/runtime.hpp"
#include "runtime/background.hpp"
#include "runtime/compose.hpp"
#include "runtime/device.hpp"
#include "runtime/kernel/kept_families.hpp"
#include "runtime/kernel/pending.hpp"
#include "runtime/operator.hpp"
#include "runtime/shape_table.hpp"
#include "specializer/forge.hpp"

namespace broach {

/// What a Runtime is made of; the command and the contract work on the same parts.
///
/// Threads: any.
struct Runtime::State {
  State(const Options& options, std::shared_ptr<runtime::Device> on, specializer::Forge with)
      : first_use(options.first_use),
        notice(runtime::notice_of(options)),
        toolkits(runtime::compilers_options(options)),
        device(std::move(on)),
        forge(std::move(with)) {}

  /// Ends promotions that are under way: what they wait for is cut short first.
  ~State() {
    forge.compilers().close();
    forge.cache().call_off();
  }

  FirstUse first_use;
  std::function<void(std::string_view)> notice;
  specializer::CompilersOptions toolkits;  ///< Where toolkits and their headers are looked for.
  std::shared_ptr<runtime::Device> device;
  specializer::Forge forge;

  /// Operators by the shape as it was asked for; shapes that resolve to one share its state.
  using Operators =
      runtime::ShapeTable<specializer::Shape, std::shared_ptr<const runtime::Operator>,
                          specializer::hash_of>;
  Operators operators;

  /// Shapes that some thread is building: others wait for that build instead of repeating it.
  std::mutex building_mutex;
  std::condition_variable built;
  std::vector<specializer::Shape> building;

  /// Families of engines that operators refer to, and their kernels that are on the way.
  runtime::KeptFamilies families;
  runtime::PendingKernels pending;

  /// Promotions to specialised kernels. Last: it ends before what its work uses.
  runtime::BackgroundQueue background;
};

}  // namespace broach
