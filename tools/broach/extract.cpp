#include <fmt/core.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "tools/broach/command.hpp"
#include "tools/broach/new_file.hpp"
#include "tools/broach/stored_object.hpp"

namespace broach::tool {
namespace {

struct Wanted {
  std::string digits;
  std::string file;
  bool force = false;
};

Result<ExitStatus> extract(Session& session, const Wanted& wanted) {
  auto cache = session.stored_cache(Session::Need::kRead);
  if (!cache) return cache.error();
  auto object = stored_object(**cache, wanted.digits);
  if (!object) return object.error();
  if (auto done =
          write_new_file(wanted.file, object->payload, wanted.force ? Replace::kYes : Replace::kNo);
      !done) {
    return done.error();
  }
  Output& output = session.output();
  const std::string key = object->key.key.hex();
  if (output.json()) {
    output.document({{"key", key},
                     {"file", wanted.file},
                     {"kind", object->description.kind},
                     {"target", object->description.target},
                     {"bytes", object->payload.size()}});
  } else {
    output.text(fmt::format("{}: {} of {} for {}, {} bytes\n", wanted.file,
                            object->description.kind, key.substr(0, 12), object->description.target,
                            object->payload.size()));
  }
  return ExitStatus::kSuccess;
}

}  // namespace

void add_extract(CommandLine& line) {
  auto wanted = std::make_shared<Wanted>();
  Command command =
      line.add("extract", "Write an entry's binary to a file: cubin, code object or shared object");
  command.add_option("KEY", wanted->digits, "The first digits of a key").required();
  command.add_option("-o,--output", wanted->file, "The file").required().placeholder("FILE");
  command.add_flag("--force", wanted->force, "Replace a file that is there");
  command.footer("The file is for profilers, debuggers and disassemblers.");
  command.action([wanted](Session& session) { return extract(session, *wanted); });
}

}  // namespace broach::tool
