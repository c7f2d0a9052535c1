#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/device.hpp"
#include "tests/support/catch.hpp"

namespace broach::test {

/// One launch as a driver would have got it.
template <class Params>
struct Launched {
  std::string function;
  runtime::LaunchConfig config;
  Params params;
};

/// A module that has every function and launches none: it writes down what it was asked for.
template <class Params>
class RecordingModule final : public runtime::Module {
 public:
  Result<const runtime::Function*> function(std::string_view name) override {
    auto& made = functions_[std::string(name)];
    if (!made) made = std::make_unique<Recorder>(std::string(name), log);
    return static_cast<const runtime::Function*>(made.get());
  }

  std::vector<Launched<Params>> log;

 private:
  class Recorder final : public runtime::Function {
   public:
    Recorder(std::string name, std::vector<Launched<Params>>& log)
        : name_(std::move(name)), log_(log) {}
    Result<void> launch(const runtime::LaunchConfig& config) const override {
      REQUIRE(config.params_bytes == sizeof(Params));
      log_.push_back({name_, config, *static_cast<const Params*>(config.params)});
      return {};
    }
    Result<LaunchLimits> live_limits() const override { return LaunchLimits{}; }

   private:
    std::string name_;
    std::vector<Launched<Params>>& log_;
  };

  std::map<std::string, std::unique_ptr<Recorder>> functions_;
};

}  // namespace broach::test
