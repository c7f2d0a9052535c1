#include "tools/broach/command.hpp"

namespace broach::tool {

CLI::App& add_subcommand(CLI::App& app, Invocation& invocation, const std::string& name,
                         const std::string& description) {
  CLI::App* command = app.add_subcommand(name, description);
  command->add_flag("--json", invocation.json, "Write JSON to standard output");
  command
      ->add_option("--cache-dir", invocation.cache_dir,
                   "Use this cache directory (default: BROACH_CACHE_DIR, XDG_CACHE_HOME/broach, "
                   "~/.cache/broach)")
      ->type_name("DIR");
  return *command;
}

}  // namespace broach::tool
