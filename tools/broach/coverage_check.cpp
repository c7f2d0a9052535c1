#include "tools/broach/coverage_check.hpp"

#include <fmt/core.h>

#include <utility>

#include "specializer/any_compiler.hpp"
#include "tools/broach/records.hpp"

namespace broach::tool {
namespace {

/// What a plan is looked for under.
struct Sought {
  Makers makers = Makers::kThisMachines;
  std::vector<cache::KeyRecord> keys;  ///< Best first.
  std::vector<cache::KeyField> fields;
};

Result<Sought> sought(specializer::Forge& forge, cache::Cache& cache,
                      const std::vector<cache::Entry>& entries, const specializer::Plan& plan,
                      Makers makers) {
  Sought wanted;
  if (makers == Makers::kThisMachines) {
    auto key = forge.key(plan);
    if (key) {
      auto fields = cache::fields_of(key->stream);
      if (!fields) return fields.error();
      return Sought{makers, {std::move(*key)}, std::move(*fields)};
    }
    if (key.error().code != ErrorCode::kCompilerMissing) return key.error();
  }
  auto fields = cache::fields_of(specializer::key_of(plan, "").stream);
  if (!fields) return fields.error();
  return Sought{Makers::kAny, specializer::made_by_any_compiler(cache, entries, plan),
                specializer::without_compiler(std::move(*fields))};
}

Coverage look_up(cache::Cache& cache, const WarmJob& job, const Sought& wanted) {
  Coverage row;
  row.job = &job;
  row.makers = wanted.makers;
  if (wanted.makers == Makers::kThisMachines) row.key = wanted.keys.front().key;
  for (const cache::KeyRecord& key : wanted.keys) {
    auto hit = cache.peek(key);
    if (hit && *hit) {
      row.hit = std::move(**hit);
      row.key = key.key;
      row.why.clear();
      break;
    }
    if (!hit) row.why = hit.error().message;
  }
  return row;
}

}  // namespace

Result<CoverageReport> check_coverage(specializer::Forge& forge, cache::Cache& cache,
                                      const std::vector<WarmJob>& jobs, Makers makers) {
  auto entries = cache.entries();
  if (!entries) return entries.error();
  CoverageReport report;
  for (const WarmJob& job : jobs) {
    const auto wanted = sought(forge, cache, *entries, job.plan, makers);
    if (!wanted) return wanted.error();
    Coverage row = look_up(cache, job, *wanted);
    if (row.hit) {
      ++report.covered;
    } else {
      row.nearest = nearest_entry(cache, *entries, job.plan, wanted->fields);
    }
    report.rows.push_back(std::move(row));
  }
  return report;
}

Result<std::vector<cache::Key>> covered_keys(const CoverageReport& report) {
  std::vector<cache::Key> keys;
  std::string missing;
  for (const Coverage& row : report.rows) {
    if (row.hit) {
      keys.push_back(*row.key);
      continue;
    }
    missing +=
        fmt::format("{} {}{}\n", row.job->plan.target.name, shape_text(row.job->plan.shape_json),
                    row.why.empty() ? "" : ": " + row.why);
  }
  if (missing.empty()) return keys;
  return Error{ErrorCode::kNotWarmed,
               fmt::format("{} of {} binaries are in no cache layer; `broach warm` with the same "
                           "models and targets makes them, `broach coverage` says what differs",
                           report.rows.size() - keys.size(), report.rows.size()),
               missing};
}

}  // namespace broach::tool
