#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>

#include "broach/version.hpp"
#include "runtime/device.hpp"
#include "specializer/target.hpp"
#include "tools/broach/command.hpp"
#include "tools/broach/format.hpp"
#include "tools/broach/records.hpp"
#include "tools/broach/remotes.hpp"

namespace broach::tool {
namespace {

/// One device as it was found, or why it was not.
struct FoundDevice {
  std::string asked;
  std::string name;
  std::string driver;
  std::string target;
  std::string why;
  std::string tried;
};

struct Report {
  std::vector<cache::LayerStatus> layers;
  std::vector<cache::RemoteStatus> remotes;
  std::vector<specializer::CompilerStatus> compilers;
  std::vector<FoundDevice> devices;
  std::vector<std::string> problems;  ///< What keeps broach from doing its work here.
};

FoundDevice look_for(const std::string& name) {
  FoundDevice found;
  found.asked = name;
  if (auto device = runtime::open_device(name)) {
    found.name = (*device)->name();
    found.driver = (*device)->driver();
    found.target = (*device)->target().name;
  } else {
    found.why = device.error().message;
    found.tried = device.error().detail;
  }
  return found;
}

std::vector<FoundDevice> look_for_devices() {
  std::vector<FoundDevice> devices = {look_for("host")};
  for (const char* kind : {"cuda", "hip"}) {
    // Ordinals are dense: the first that is missing is the end.
    for (int ordinal = 0;; ++ordinal) {
      FoundDevice next = look_for(fmt::format("{}:{}", kind, ordinal));
      const bool found = next.why.empty();
      if (found || ordinal == 0) devices.push_back(std::move(next));
      if (!found) break;
    }
  }
  return devices;
}

Report examine(Session& session) {
  Report report;
  report.layers = session.cache().layers();
  std::erase_if(report.layers, [](const cache::LayerStatus& status) {
    return status.layer.kind == cache::LayerKind::kRemote;  // Asked, and shown apart.
  });
  report.remotes = session.cache().probe_remotes();
  report.compilers = session.compilers().status();
  report.devices = look_for_devices();
  bool stored = false;
  for (const cache::LayerStatus& status : report.layers) {
    stored |= status.usable && status.layer.kind == cache::LayerKind::kUser;
  }
  if (!stored) report.problems.emplace_back("no cache directory can be used: nothing will be kept");
  bool compiles = false;
  for (const specializer::CompilerStatus& status : report.compilers) {
    compiles |= status.found.has_value();
  }
  if (!compiles) report.problems.emplace_back("no compiler was found: only warmed shapes can run");
  return report;
}

Json to_document(const Report& report) {
  Json layers = Json::array();
  for (const cache::LayerStatus& status : report.layers) layers.push_back(to_json(status));
  Json remotes = Json::array();
  for (const cache::RemoteStatus& status : report.remotes) remotes.push_back(to_json(status));
  Json compilers = Json::array();
  for (const specializer::CompilerStatus& status : report.compilers) {
    Json row = {{"kind", specializer::name_of(status.kind)},
                {"found", status.found.has_value()},
                {"identity", status.found ? Json(status.found->key_text) : Json(nullptr)},
                {"words", status.found ? Json(status.found->words) : Json(nullptr)},
                {"path", status.found ? Json(status.found->path) : Json(nullptr)},
                {"why", status.why},
                {"tried", status.tried},
                {"targets", status.targets}};
    compilers.push_back(std::move(row));
  }
  Json devices = Json::array();
  for (const FoundDevice& device : report.devices) {
    devices.push_back({{"device", device.asked},
                       {"found", device.why.empty()},
                       {"name", device.name},
                       {"driver", device.driver},
                       {"target", device.target},
                       {"why", device.why},
                       {"tried", device.tried}});
  }
  return {{"broach", BROACH_VERSION}, {"layers", layers},   {"remotes", remotes},
          {"compilers", compilers},   {"devices", devices}, {"problems", report.problems}};
}

std::string indented(std::string_view detail) {
  std::string text;
  for (std::size_t at = 0; at < detail.size();) {
    const std::size_t end = std::min(detail.find('\n', at), detail.size());
    text += fmt::format("      {}\n", detail.substr(at, end - at));
    at = end + 1;
  }
  return text;
}

std::string to_text(const Report& report) {
  std::string text =
      fmt::format("broach {}\n\ncache layers, in the order they are looked in\n", BROACH_VERSION);
  for (const cache::LayerStatus& status : report.layers) {
    text += fmt::format("  {:<9}  {}\n", name_of(status.layer.kind), status.layer.name);
    std::error_code fault;
    if (status.layer.kind == cache::LayerKind::kUser && status.usable &&
        !std::filesystem::exists(status.layer.name, fault)) {
      text += "      not made yet: the first binary makes it\n";
      continue;
    }
    if (!status.filesystem.empty() || !status.journal.empty()) {
      text += fmt::format("      on {}; index: {}\n",
                          status.filesystem.empty() ? "?" : status.filesystem,
                          status.journal.empty() ? "none" : status.journal);
    }
    if (!status.why.empty()) {
      text += fmt::format("      {}: {}\n", status.usable ? "note" : "not used", status.why);
    }
  }
  if (!report.remotes.empty()) text += "\nremotes, asked after them\n";
  for (const cache::RemoteStatus& status : report.remotes) text += remote_text(status);
  text += "\ncompilers\n";
  for (const specializer::CompilerStatus& status : report.compilers) {
    if (status.found) {
      text += fmt::format("  {:<9}  {}\n      {}\n", specializer::name_of(status.kind),
                          status.found->words, status.found->path);
      if (!status.why.empty()) text += fmt::format("      note: {}\n", status.why);
    } else {
      text +=
          fmt::format("  {:<9}  not found: {}\n", specializer::name_of(status.kind), status.why);
      for (const std::string& path : status.tried) text += fmt::format("      tried {}\n", path);
    }
    if (!status.targets.empty()) {
      text += fmt::format("      compiles for {}\n", fmt::join(status.targets, " "));
    }
  }
  text += "\ndevices\n";
  for (const FoundDevice& device : report.devices) {
    if (device.why.empty()) {
      text += fmt::format("  {:<9}  {}, target {}{}{}\n", device.asked, device.name, device.target,
                          device.driver.empty() ? "" : ", driver ", device.driver);
    } else {
      text += fmt::format("  {:<9}  not found: {}\n{}", device.asked, device.why,
                          indented(device.tried));
    }
  }
  for (const std::string& problem : report.problems)
    text += fmt::format("\nproblem: {}\n", problem);
  return text;
}

Result<ExitStatus> doctor(Session& session) {
  const Report report = examine(session);
  if (session.output().json()) {
    session.output().document(to_document(report));
  } else {
    session.output().text(to_text(report));
  }
  return report.problems.empty() ? ExitStatus::kSuccess : ExitStatus::kDoesNotHold;
}

}  // namespace

void add_doctor(CommandLine& line) {
  Command command =
      line.add("doctor", "Show compilers, devices and cache layers, and what was tried");
  command.action(doctor);
}

}  // namespace broach::tool
