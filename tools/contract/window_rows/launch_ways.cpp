#include "tools/contract/window_rows/launch_ways.hpp"

#include <string_view>
#include <utility>

namespace broach::contract::window_rows {
namespace {

using Combine = runtime::Tile64Schedule::Combine;

struct NamedSchedule {
  std::string_view name;
  runtime::Tile64Schedule schedule;
};
constexpr NamedSchedule kSchedules[] = {{"combined in the CTA", {Combine::kInCta, 1}},
                                        {"combined by the last CTA", {Combine::kByLastCta, 2}},
                                        {"combined by a second kernel", {Combine::kByKernel, 3}}};

}  // namespace

Result<std::vector<LaunchWay>> launch_ways(const Kernel& kernel) {
  std::vector<LaunchWay> ways;
  if (!is_tile64(kernel.shape().arith) || kernel.shape().form == Form::kPrefill) {
    ways.push_back({"", kernel.decoder()});
    return ways;
  }
  for (const NamedSchedule& one : kSchedules) {
    auto decoder = kernel.decoder(one.schedule);
    if (!decoder) return decoder.error();
    ways.push_back({std::string(one.name), std::move(*decoder)});
  }
  return ways;
}

}  // namespace broach::contract::window_rows
