#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "tools/broach/command.hpp"
#include "tools/broach/format.hpp"

namespace broach::tool {
namespace {

Result<ExitStatus> verify(Session& session) {
  auto cache = session.stored_cache(Session::Need::kRead);
  if (!cache) return cache.error();
  auto report = (*cache)->verify();
  if (!report) return report.error();
  Output& output = session.output();
  if (output.json()) {
    output.document({{"objects", report->objects},
                     {"damaged", report->damaged},
                     {"unread", report->unread},
                     {"findings", report->findings}});
  } else {
    for (const std::string& finding : report->findings) output.text(one_line(finding) + '\n');
    output.text(fmt::format(
        "{} read and checked, {} damaged{}{}\n", count_text(report->objects, "object"),
        report->damaged, report->damaged == 0 ? "" : "; `broach quarantine` lists them",
        report->unread == 0 ? "" : fmt::format("; {} could not be looked at", report->unread)));
  }
  return report->findings.empty() ? ExitStatus::kSuccess : ExitStatus::kDoesNotHold;
}

}  // namespace

void add_verify(CommandLine& line) {
  Command command = line.add("verify", "Read every object again and check its digests");
  command.action(verify);
}

}  // namespace broach::tool
