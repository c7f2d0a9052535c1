#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "broach/result.hpp"
#include "cache/fd.hpp"
#include "specializer/include_scan.hpp"
#include "specializer/plan.hpp"

namespace broach::specializer::own {

/// One file of a header pack, as it was read.
struct PackFile {
  std::string bytes;
  std::vector<IncludeDirective> includes;
};

/// A tree of headers that a family declares by name. Its files are known by their path in the
/// tree; where the tree lies is in no key.
///
/// A file is read when an include first asks for it, and once: what a plan hashes and what a
/// compiler gets are the same bytes, whatever happens on disk. Each directory on the way is walked
/// as a cache directory's is: what others than this user and root could have written is refused.
///
/// Threads: any.
/// Owns:    the bytes of its files.
class HeaderPack {
 public:
  /// Whether a file of the directories belongs to the tree.
  using IsPart = bool (*)(std::string_view file);

  /// A tree on disk; of several roots the first that has a file counts. Nothing is opened yet.
  static std::shared_ptr<const HeaderPack> of_directories(std::string name,
                                                          std::vector<std::filesystem::path> roots,
                                                          IsPart is_part = nullptr);

  /// A tree in memory, such as a bundle's.
  static std::shared_ptr<const HeaderPack> of_files(std::string name,
                                                    std::vector<SourceFile> files);

  /// A tree that is not on this machine: whatever asks for one of its files gets `why`.
  static std::shared_ptr<const HeaderPack> absent(std::string name, Error why);

  ~HeaderPack();
  HeaderPack(const HeaderPack&) = delete;
  HeaderPack& operator=(const HeaderPack&) = delete;

  const std::string& name() const noexcept { return name_; }

  /// A file by its path in the tree, as virtual_name gives it; null where there is none. It lives
  /// as long as the pack.
  ///
  /// Errors:  kNotFound where the tree itself is not there; kDenied with the part that others can
  ///          write; kLimitExceeded past kMaxPackFileBytes or kMaxPackFiles; kIo.
  Result<const PackFile*> find(std::string_view file) const;

 private:
  struct Root;

  explicit HeaderPack(std::string name);
  Result<std::unique_ptr<PackFile>> read(const std::string& file) const;

  std::string name_;
  std::optional<Error> absent_;
  IsPart is_part_ = nullptr;
  mutable std::mutex mutex_;
  mutable std::vector<Root> roots_;
  mutable std::map<std::string, std::unique_ptr<PackFile>, std::less<>> files_;  ///< Null: none.
  mutable std::size_t read_ = 0;
};

inline constexpr std::size_t kMaxPackFileBytes = std::size_t{8} << 20;
inline constexpr std::size_t kMaxPackFiles = 20'000;

}  // namespace broach::specializer::own
