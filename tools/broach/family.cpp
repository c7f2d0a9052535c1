#include <fmt/core.h>
#include <sys/stat.h>

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "runtime/compose.hpp"
#include "specializer/own/load.hpp"
#include "specializer/own/names.hpp"
#include "specializer/plan.hpp"
#include "tools/broach/command.hpp"
#include "tools/broach/family_skeleton.hpp"
#include "tools/broach/format.hpp"
#include "tools/broach/new_file.hpp"
#include "tools/broach/output.hpp"

namespace broach::tool {
namespace {

using specializer::Shape;
using specializer::Target;
using specializer::own::OwnFamily;
using specializer::own::Parameter;
using specializer::own::TargetRule;

/// The least value of a number that is served, from its default on.
std::uint32_t served_number(const Parameter& parameter) {
  if (specializer::own::number_fault(parameter, parameter.default_value).empty()) {
    return parameter.default_value;
  }
  if (!parameter.listed.empty()) return parameter.listed.front();
  const std::uint32_t unit = parameter.multiple_of;
  return (parameter.least + unit - 1) / unit * unit;
}

/// A shape of a family that the ranges allow.
Shape some_shape(const OwnFamily& family) {
  Shape shape(family);
  const auto& parameters = family.description().parameters;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    if (!parameters[i].is_choice()) shape.set(i, served_number(parameters[i]));
  }
  return shape;
}

/// What a family comes to on one of its targets.
struct Checked {
  std::string rule;
  std::string target;
  std::size_t files = 0;
  std::size_t bytes = 0;
};

/// Plans a shape for a chip of each rule: every include is followed, nothing is compiled.
Result<std::vector<Checked>> check_targets(const OwnFamily& family) {
  std::vector<Checked> rows;
  for (const TargetRule& rule : family.description().targets) {
    const std::string chip = rule.text.substr(0, rule.text.find('+'));
    auto target = specializer::parse_target(chip);
    if (!target) return target.error();
    auto served = specializer::serve(some_shape(family), *target);
    if (!served) return served.error();
    auto plan = specializer::plan(*served);
    if (!plan) return plan.error();
    Checked row{rule.text, target->name, plan->sources.size(), 0};
    for (const specializer::SourceFile& source : plan->sources) row.bytes += source.bytes.size();
    rows.push_back(std::move(row));
  }
  return rows;
}

Json to_document(const OwnFamily& family, const std::vector<Checked>& rows) {
  Json parameters = Json::array();
  for (const Parameter& each : family.description().parameters) parameters.push_back(each.name);
  Json functions = Json::array();
  for (const auto& each : family.description().functions) functions.push_back(each.name);
  Json targets = Json::array();
  for (const Checked& row : rows) {
    targets.push_back(
        {{"rule", row.rule}, {"target", row.target}, {"files", row.files}, {"bytes", row.bytes}});
  }
  return {{"family", family.name()},
          {"digest", family.digest()},
          {"parameters", parameters},
          {"functions", functions},
          {"targets", targets}};
}

Result<ExitStatus> check(Session& session, const std::string& file) {
  auto family = specializer::own::load_family(file, runtime::compilers_options(session.options()));
  if (!family) return family.error();
  auto rows = check_targets(**family);
  if (!rows) return rows.error();
  Output& output = session.output();
  if (output.json()) {
    output.document(to_document(**family, *rows));
    return ExitStatus::kSuccess;
  }
  Table table;
  table.column("TARGETS").column("CHECKED ON").column("FILES", Table::Align::kRight);
  table.column("SOURCE", Table::Align::kRight);
  for (const Checked& row : *rows) {
    table.row({row.rule, row.target, std::to_string(row.files), bytes_text(row.bytes)});
  }
  output.text(fmt::format("{}\n{}a shape: {}\n", (*family)->name(), table.text(),
                          specializer::to_text(some_shape(**family))));
  return ExitStatus::kSuccess;
}

Result<ExitStatus> make(Session& session, const std::string& name, const std::string& directory) {
  if (!specializer::own::is_family_name(name)) {
    return Error{ErrorCode::kInvalidArgument, specializer::own::family_name_fault(name), ""};
  }
  const FamilySkeleton skeleton = skeleton_of(name);
  std::string written;
  for (const auto& [file, text] : {std::pair(skeleton.family_file, skeleton.family_text),
                                   std::pair(skeleton.source_file, skeleton.source_text)}) {
    const std::string path = (std::filesystem::path(directory) / file).string();
    if (auto done = write_new_file(path, std::as_bytes(std::span(text)), Replace::kNo); !done) {
      return done.error();
    }
    written += path + "\n";
  }
  Output& output = session.output();
  if (output.json()) {
    output.document({{"family", name},
                     {"files", {skeleton.family_file, skeleton.source_file}},
                     {"shape", skeleton.shape}});
  } else {
    output.text(written);
    output.note(fmt::format("`broach warm --family {} --shape '{}' --target host` compiles it",
                            (std::filesystem::path(directory) / skeleton.family_file).string(),
                            skeleton.shape));
  }
  return ExitStatus::kSuccess;
}

}  // namespace

void add_family(CommandLine& line) {
  Command command = line.add("family", "Check a family file of your own kernels, or begin one");
  auto file = std::make_shared<std::string>();
  auto name = std::make_shared<std::string>();
  auto directory = std::make_shared<std::string>(".");

  Command checked =
      command.add_word("check", "Read a family file and follow every include for each target");
  checked.add_option("FILE", *file, "The family file").required();
  checked.action([file](Session& session) { return check(session, *file); });

  Command made = command.add_word("new", "Write a family file and a kernel that works");
  made.add_option("NAME", *name, "vendor.family, such as acme.scale").required();
  made.add_option("--directory", *directory, "Where the files go; none is replaced")
      .shows_default();
  made.action([name, directory](Session& session) { return make(session, *name, *directory); });

  command.require_word();
  command.footer("docs/own_families.md describes the file.");
}

}  // namespace broach::tool
