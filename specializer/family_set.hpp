#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "broach/result.hpp"
#include "specializer/family.hpp"

namespace broach::specializer {

/// The families that a runtime or a command knows: this version's own, then those that were added.
///
/// Threads: one adds; any read what is there.
/// Owns:    a share of each family that was added, so that shapes of it stay valid.
class FamilySet {
 public:
  FamilySet();

  /// Adds a family; one that is there already, by name and contents, is taken for it.
  ///
  /// Errors:  kInvalidArgument when a family of that name and other contents is there.
  Result<const Family*> add(std::shared_ptr<const Family> family);

  std::span<const Family* const> all() const noexcept { return all_; }

  /// A family by name, or null.
  const Family* find(std::string_view name) const noexcept;

  /// A family by name.
  ///
  /// Errors:  kInvalidArgument naming the families there are.
  Result<const Family*> named(std::string_view name) const;

 private:
  std::vector<const Family*> all_;
  std::vector<std::shared_ptr<const Family>> added_;
};

}  // namespace broach::specializer
