#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "broach/result.hpp"
#include "cache/cache.hpp"
#include "specializer/family_set.hpp"
#include "specializer/manifest.hpp"
#include "tools/broach/command.hpp"
#include "tools/broach/warm_jobs.hpp"

namespace broach::tool {

/// What a warm run was asked for, as the command line has it.
struct WarmRequest {
  std::vector<std::string> manifests;  ///< Shipped names or files.
  std::vector<std::string> shapes;     ///< "FAMILY name=value …" each.
  bool all = false;
  bool from_journal = false;
  std::vector<std::string> targets;
  std::vector<std::string> models;  ///< Only these; empty: every one.
  std::string form;                 ///< Of shapes that have one; empty: what has a kernel.
  std::string shard;                ///< "i/n" or empty.
  bool generic = false;             ///< The generic kernels of these shapes too.
};

/// The option --form alone.
void add_form(Command& command, WarmRequest& request);

/// Options that say which shapes and targets are meant: MODEL, --all, --target, --model, --form.
void add_selection(Command& command, WarmRequest& request);

/// A row of the journal that nothing can be compiled for.
struct RefusedRow {
  std::string row;  ///< Family, shape and target, as they stand there.
  std::string why;
};

/// What a request comes to.
struct WarmList {
  std::vector<WarmJob> jobs;  ///< Each binary once, in a fixed order.
  /// Shapes of a form that no kernel of this version serves on a target, left out because no form
  /// was asked for by name.
  std::size_t without_kernel = 0;
  std::vector<RefusedRow> refused_rows;            ///< Left out, the others stay.
  std::vector<specializer::NotServed> not_served;  ///< Of the manifests and models that were named.
  std::size_t requested = 0;                       ///< Jobs of all shards together.
};

/// Errors:  kInvalidArgument naming the manifest, model, target or shard and what would work;
///          kUnsupported for a shape without a kernel when its form was asked for; kIo when a
///          manifest file cannot be read.
Result<WarmList> list_jobs(const WarmRequest& request, cache::Cache& cache,
                           const specializer::FamilySet& families = {});

}  // namespace broach::tool
