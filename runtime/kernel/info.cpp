#include "runtime/kernel/info.hpp"

namespace broach::runtime {

KernelInfo info_of(const Operator& op) {
  const Operator::Loaded& loaded = op.loaded();
  return {loaded.key.hex(), loaded.layer, loaded.compiled, op.is_generic(), loaded.limits};
}

}  // namespace broach::runtime
