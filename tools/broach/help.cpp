#include <memory>

#include "specializer/target.hpp"
#include "tools/broach/command.hpp"
#include "tools/broach/shape_argument.hpp"

namespace broach::tool {
namespace {

constexpr char kEnvironmentHelp[] =
    "Environment (read once, at the start):\n"
    "  BROACH_CACHE_DIR             the cache directory; default XDG_CACHE_HOME/broach, then\n"
    "                               ~/.cache/broach; memory only where none can be used\n"
    "  BROACH_CACHE_PATH            read-only cache directories and bundles, colon-separated\n"
    "  BROACH_FAMILY_PATH           family files and directories of *.family.json, "
    "colon-separated\n"
    "  BROACH_TRUSTED_KEYS          directories of the public keys whose signatures count; "
    "default\n"
    "                               ~/.config/broach/trusted_keys and /etc/broach/trusted_keys\n"
    "  BROACH_REMOTE                stores of signed binaries, by URL: redis://, rediss://, "
    "http://,\n"
    "                               https://; several apart by spaces (docs/remote.md)\n"
    "  BROACH_REMOTE_TOKEN, BROACH_REMOTE_TOKEN_FILE\n"
    "                               the remote's secret, or a file that holds it\n"
    "  BROACH_REMOTE_CA             authorities of its certificate, a PEM file; default: the\n"
    "                               system's\n"
    "  BROACH_REMOTE_MODE           read-write or read-only\n"
    "  BROACH_REMOTE_TIMEOUT_MS     how long a look-up waits for its first byte; default 200\n"
    "  BROACH_SIGNING_KEY           a secret key's file; without one nothing is uploaded\n"
    "  BROACH_CACHE_BYTES, BROACH_CACHE_OBJECTS\n"
    "                               budgets of the cache directory\n"
    "  BROACH_DEVICE                auto (a GPU), host, cuda, cuda:N, hip or hip:N\n"
    "  BROACH_FIRST_USE             wait, background or never: what an embedding program does at "
    "a\n"
    "                               shape that no cache layer holds\n"
    "  BROACH_CXX                   the host target's C++ compiler\n"
    "  BROACH_NVRTC, BROACH_HIPRTC  a compiler library's file\n"
    "  BROACH_HIPRTC_PREFIX         unpacked packages with a hiprtc of their own\n"
    "  BROACH_WORKER                the broach-rtc program\n"
    "  BROACH_JOBS                  workers a compiler at most\n"
    "  BROACH_COMPILE_TIME_LIMIT, BROACH_COMPILE_MEMORY_LIMIT\n"
    "                               what one compile may use, in seconds and bytes\n"
    "  TMPDIR                       for compilers' temporary files, tried before /tmp, /var/tmp,\n"
    "                               /dev/shm and the cache directory";

std::string targets_text() {
  std::string text = "host\n";
  for (const std::string_view name : specializer::known_targets()) text.append(name).append("\n");
  text.pop_back();
  return text;
}

std::string text_of(const std::string& topic) {
  if (topic == "exit-status") return kExitStatusHelp;
  if (topic == "environment") return kEnvironmentHelp;
  if (topic == "shapes") return shape_help();
  if (topic == "targets") return targets_text();
  return "`broach --help` lists the commands, `broach COMMAND --help` a command's options, and\n"
         "`broach help TOPIC` prints exit-status, environment, shapes or targets.";
}

}  // namespace

void add_help(CommandLine& line) {
  auto topic = std::make_shared<std::string>();
  Command command =
      line.add_plain("help", "Print a topic: exit-status, environment, shapes, targets");
  command.add_option("TOPIC", *topic, "exit-status, environment, shapes or targets")
      .one_of({"exit-status", "environment", "shapes", "targets"});
  command.action([topic](Session& session) -> Result<ExitStatus> {
    session.output().text(text_of(*topic) + '\n');
    return ExitStatus::kSuccess;
  });
}

}  // namespace broach::tool
