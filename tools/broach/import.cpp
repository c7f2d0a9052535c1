#include <fmt/core.h>

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "cache/bundle.hpp"
#include "runtime/compose.hpp"
#include "tools/broach/command.hpp"
#include "tools/broach/format.hpp"
#include "tools/broach/layer_alone.hpp"

namespace broach::tool {
namespace {

struct Wanted {
  std::string file;
  bool allow_unsigned = false;
};

struct Imported {
  std::uint64_t objects = 0;
  std::uint64_t there = 0;  ///< In the writable directory before.
  std::uint64_t bytes = 0;
};

Result<std::unique_ptr<cache::Bundle>> open_bundle(Session& session, const Wanted& wanted) {
  const auto keys =
      cache::TrustedKeys::load(runtime::cache_options(session.options()).trusted_keys);
  for (const std::string& problem : keys.problems()) session.output().note(problem);
  auto bundle = cache::Bundle::open(wanted.file, keys, cache::BundleTrust::kSignature);
  const bool vouched =
      !bundle && wanted.allow_unsigned &&
      (bundle.error().reason == Reason::kUnsigned || bundle.error().reason == Reason::kUntrusted);
  if (vouched) bundle = cache::Bundle::open(wanted.file, keys, cache::BundleTrust::kOwner);
  if (bundle) return bundle;
  Error refused = bundle.error();
  refused.code = code_of_place(refused.code);
  return refused;
}

/// Everything is read and checked before anything is stored: a bundle is taken whole or not.
Result<void> check_whole(const cache::Bundle& bundle) {
  for (const cache::BundleEntry& entry : bundle.entries()) {
    auto object = bundle.object(entry);
    if (!object) return object.error();
  }
  return {};
}

Result<Imported> store_all(Session& session, cache::Cache& cache, const cache::Bundle& bundle) {
  Imported imported;
  for (const cache::BundleEntry& entry : bundle.entries()) {
    auto object = bundle.object(entry);
    if (!object) return object.error();
    ++imported.objects;
    imported.bytes += entry.object_bytes;
    const auto there = cache.peek(object->key);
    if (there && *there && (*there)->layer.kind == cache::LayerKind::kUser) {
      ++imported.there;
      continue;
    }
    cache.publish(std::move(*object));
  }
  // What this process holds in memory proves nothing.
  const auto fresh = session.fresh_cache();
  std::uint64_t kept = 0;
  for (const cache::BundleEntry& entry : bundle.entries()) {
    auto found = fresh->read_head(entry.key);
    if (found && *found) ++kept;
  }
  if (kept == imported.objects) return imported;
  return Error{ErrorCode::kIo,
               fmt::format("{} of {} objects could not be kept; make room in the cache directory, "
                           "raise BROACH_CACHE_BYTES, or pass --cache-dir",
                           imported.objects - kept, imported.objects),
               ""};
}

Result<ExitStatus> import(Session& session, const Wanted& wanted) {
  const auto bundle = open_bundle(session, wanted);
  if (!bundle) return bundle.error();
  auto cache = session.stored_cache(Session::Need::kWrite);
  if (!cache) return cache.error();
  if (auto whole = check_whole(**bundle); !whole) return whole.error();
  const auto imported = store_all(session, **cache, **bundle);
  if (!imported) return imported.error();
  const auto& signer = (*bundle)->signed_by();
  Output& output = session.output();
  if (output.json()) {
    output.document({{"file", wanted.file},
                     {"objects", imported->objects},
                     {"already_there", imported->there},
                     {"object_bytes", imported->bytes},
                     {"signed_by", signer ? Json(signer->id().hex()) : Json(nullptr)}});
    return ExitStatus::kSuccess;
  }
  output.text(fmt::format(
      "{}: {}, {} of them already there, {}, {}\n", wanted.file,
      count_text(imported->objects, "object"), imported->there, bytes_text(imported->bytes),
      signer ? fmt::format("signed by {} ({})", signer->name, signer->id().hex())
             : "signed by nobody you trust: you vouch for it"));
  return ExitStatus::kSuccess;
}

}  // namespace

void add_import(CommandLine& line) {
  auto wanted = std::make_shared<Wanted>();
  Command command = line.add("import", "Take a bundle's objects into the cache directory");
  command.add_option("FILE", wanted->file, "The bundle").required();
  command.add_flag("--unsigned", wanted->allow_unsigned,
                   "Vouch for a bundle that no trusted key signed; you or root must own the file");
  command.footer(
      "A bundle is checked whole before anything is stored. One that is damaged, claims too much "
      "or\n"
      "is not signed by a trusted key (broach key ls) is refused by name. BROACH_CACHE_PATH may\n"
      "name a signed bundle, too: it is then used where it lies.");
  command.action([wanted](Session& session) { return import(session, *wanted); });
}

}  // namespace broach::tool
