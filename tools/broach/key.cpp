#include <fmt/core.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "cache/key_file.hpp"
#include "cache/trusted_keys.hpp"
#include "runtime/compose.hpp"
#include "tools/broach/command.hpp"
#include "tools/broach/format.hpp"

namespace broach::tool {
namespace {

constexpr char kPublicSuffix[] = ".pub";

Json to_json(const cache::PublicKey& key) { return {{"id", key.id().hex()}, {"name", key.name}}; }

Result<std::string> own_directory(const Session& session) {
  const auto& directories = session.options().trusted_keys;
  if (!directories.empty()) return directories.front();
  return Error{ErrorCode::kInvalidArgument,
               "no directory of trusted keys is named; set BROACH_TRUSTED_KEYS or HOME", ""};
}

Result<ExitStatus> generate(Session& session, const std::string& file, const std::string& name) {
  if (auto fine = cache::check_key_name(name); !fine) return fine.error();
  const auto key = cache::SecretKey::generate(name);
  if (auto written = cache::write_secret_key(file, key); !written) return written.error();
  const std::string open_file = file + kPublicSuffix;
  if (auto written = cache::write_public_key(open_file, key.public_key()); !written) {
    return written.error();
  }
  Output& output = session.output();
  if (output.json()) {
    Json json = to_json(key.public_key());
    json["secret_key"] = file;
    json["public_key"] = open_file;
    output.document(json);
    return ExitStatus::kSuccess;
  }
  output.text(
      fmt::format("key {} ({})\n  {}: keep it secret; it signs (broach export --sign)\n"
                  "  {}: give it to those who shall trust it (broach key trust)\n",
                  key.public_key().id().hex(), name, file, open_file));
  return ExitStatus::kSuccess;
}

Result<ExitStatus> trust(Session& session, const std::string& file) {
  const auto key = cache::read_public_key(file);
  if (!key) return key.error();
  const auto directory = own_directory(session);
  if (!directory) return directory.error();
  const auto place = cache::trust_key(*directory, *key);
  if (!place) return place.error();
  Output& output = session.output();
  if (output.json()) {
    Json json = to_json(*key);
    json["file"] = place->string();
    output.document(json);
  } else {
    output.text(
        fmt::format("key {} ({}) is trusted: {}\n", key->id().hex(), key->name, place->string()));
  }
  return ExitStatus::kSuccess;
}

Result<ExitStatus> distrust(Session& session, const std::string& id) {
  const auto directory = own_directory(session);
  if (!directory) return directory.error();
  if (auto gone = cache::distrust_key(*directory, id); !gone) return gone.error();
  if (session.output().json()) {
    session.output().document({{"id", id}});
  } else {
    session.output().text(fmt::format("key {} is not trusted any more by {}\n", id, *directory));
  }
  return ExitStatus::kSuccess;
}

Result<ExitStatus> list(Session& session) {
  const auto directories = runtime::cache_options(session.options()).trusted_keys;
  const auto trusted = cache::TrustedKeys::load(directories);
  Output& output = session.output();
  if (output.json()) {
    Json keys = Json::array();
    for (const cache::PublicKey& key : trusted.keys()) keys.push_back(to_json(key));
    Json searched = Json::array();
    for (const auto& directory : directories) searched.push_back(directory.string());
    output.document({{"keys", keys}, {"directories", searched}, {"problems", trusted.problems()}});
  } else {
    Table table;
    table.column("KEY").column("NAME");
    for (const cache::PublicKey& key : trusted.keys()) table.row({key.id().hex(), key.name});
    if (!table.empty()) output.text(table.text());
    if (table.empty()) output.note("no key is trusted; `broach key trust FILE` trusts one");
    for (const std::string& problem : trusted.problems()) output.note(problem);
  }
  return trusted.problems().empty() ? ExitStatus::kSuccess : ExitStatus::kDoesNotHold;
}

Result<ExitStatus> sign(Session& session, const std::string& file) {
  const auto key = cache::read_secret_key(file);
  if (!key) return key.error();
  auto cache = session.stored_cache(Session::Need::kWrite);
  if (!cache) return cache.error();
  const auto count = (*cache)->sign(*key);
  if (!count) return count.error();
  Output& output = session.output();
  if (output.json()) {
    Json json = to_json(key->public_key());
    json["objects"] = *count;
    output.document(json);
  } else {
    output.text(fmt::format("{} signed by {} ({})\n", count_text(*count, "object"),
                            key->public_key().name, key->public_key().id().hex()));
  }
  return ExitStatus::kSuccess;
}

}  // namespace

void add_key(CommandLine& line) {
  Command command =
      line.add("key", "Make keys that sign binaries, and say whose signatures are trusted");
  auto file = std::make_shared<std::string>();
  auto name = std::make_shared<std::string>("broach key");

  Command made = command.add_word("generate", "Make a key pair: FILE and FILE.pub");
  made.add_option("FILE", *file, "The secret key; a file that exists is never replaced").required();
  made.add_option("--name", *name, "What the key is called").shows_default();
  made.action([file, name](Session& session) { return generate(session, *file, *name); });

  Command trusted = command.add_word("trust", "Use what this public key's owner signed");
  trusted.add_option("FILE", *file, "The public key").required();
  trusted.action([file](Session& session) { return trust(session, *file); });

  Command refused = command.add_word("distrust", "Stop using what a key signed");
  refused.add_option("KEY", *file, "The key's 32 digits, as `broach key ls` has them").required();
  refused.action([file](Session& session) { return distrust(session, *file); });

  command.add_word("ls", "List the trusted keys").action(list);

  Command signs =
      command.add_word("sign", "Sign every object of the cache directory, for other users");
  signs.add_option("FILE", *file, "The secret key").required();
  signs.action([file](Session& session) { return sign(session, *file); });

  command.require_word();
  command.footer(
      "Signatures are needed for bundles, for remote tiers, and for read-only directories that\n"
      "belong to another user. The user's keys lie in XDG_CONFIG_HOME/broach/trusted_keys or\n"
      "~/.config/broach/trusted_keys, the machine's in /etc/broach/trusted_keys.");
}

}  // namespace broach::tool
