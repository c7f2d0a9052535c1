#include "specializer/own/toolkit_packs.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "specializer/compile/loader_directories.hpp"
#include "specializer/compile/search.hpp"

namespace broach::specializer::own {
namespace {

namespace fs = std::filesystem;

/// One toolkit: how its headers are told from others, and where they lie.
struct Toolkit {
  std::string_view pack;
  std::string_view marker;  ///< A header that the directory must have.
  std::span<const std::string_view> beginnings;
  /// From the directory of the compiler's library.
  std::span<const std::string_view> from_library;
  std::span<const std::string_view> usual;
  std::span<const std::string_view> within;  ///< Folders that are searched before the directory.
  std::string_view option;
};

// Names that a header of CUDA's toolkit for device code begins with.
constexpr std::array<std::string_view, 25> kCudaBeginnings = {"builtin_types.h",
                                                              "channel_descriptor.h",
                                                              "common_functions.h",
                                                              "cooperative_groups",
                                                              "crt/",
                                                              "cub/",
                                                              "cuComplex.h",
                                                              "cuda/",
                                                              "cuda_",
                                                              "cuda.h",
                                                              "curand",
                                                              "cudart_",
                                                              "device_",
                                                              "driver_",
                                                              "host_",
                                                              "library_types.h",
                                                              "math_",
                                                              "mma.h",
                                                              "nv/",
                                                              "sm_",
                                                              "surface_",
                                                              "texture_",
                                                              "thrust/",
                                                              "vector_",
                                                              "nvfunctional"};
constexpr std::array<std::string_view, 4> kCudaFromLibrary = {
    "../include", "../../include", "../../cuda_runtime/include", "../../../include"};
constexpr std::array<std::string_view, 3> kCudaUsual = {"/usr/local/cuda/include",
                                                        "/opt/cuda/include", "/usr/include"};
constexpr std::array<std::string_view, 1> kCudaWithin = {"cccl"};

constexpr std::array<std::string_view, 5> kHipBeginnings = {"hip/", "hipcub/", "rocprim/",
                                                            "rocwmma/", "thrust/"};
constexpr std::array<std::string_view, 3> kHipFromLibrary = {"../include", "../../include",
                                                             "../../../include"};
constexpr std::array<std::string_view, 2> kHipUsual = {"/opt/rocm/include", "/usr/include"};

constexpr Toolkit kCuda = {"cuda",     "cuda_fp16.h", kCudaBeginnings,      kCudaFromLibrary,
                           kCudaUsual, kCudaWithin,   "BROACH_CUDA_INCLUDE"};
constexpr Toolkit kHip = {"hip", "hip/hip_fp16.h",    kHipBeginnings, kHipFromLibrary, kHipUsual,
                          {},    "BROACH_HIP_INCLUDE"};

template <const Toolkit& kToolkit>
bool is_part(std::string_view name) {
  return std::any_of(kToolkit.beginnings.begin(), kToolkit.beginnings.end(),
                     [&](std::string_view start) { return name.starts_with(start); });
}

bool has(const fs::path& directory, std::string_view marker) {
  std::error_code ignored;
  return fs::is_regular_file(directory / marker, ignored);
}

/// Directories that may hold the headers, best first.
std::vector<fs::path> places(const Toolkit& toolkit, CompilerKind kind,
                             const CompilersOptions& options) {
  std::vector<fs::path> found;
  for (const fs::path& library : find_compiler(kind, options, Extent::kFirst).files) {
    std::error_code error;
    const fs::path real = fs::canonical(library, error);
    for (const std::string_view part : toolkit.from_library) {
      if (!error) add_once(found, (real.parent_path() / part).lexically_normal());
      add_once(found, (library.parent_path() / part).lexically_normal());
    }
  }
  for (const std::string_view place : toolkit.usual) add_once(found, place);
  return found;
}

/// The pack of these directories: families that are loaded at one time read its files once.
std::shared_ptr<const HeaderPack> shared_pack(const Toolkit& toolkit, std::vector<fs::path> roots,
                                              HeaderPack::IsPart is_part) {
  static std::mutex mutex;
  static std::map<std::pair<std::string_view, std::vector<fs::path>>,
                  std::weak_ptr<const HeaderPack>>
      packs;
  const std::lock_guard lock(mutex);
  auto& held = packs[{toolkit.pack, roots}];
  auto pack = held.lock();
  if (pack == nullptr) {
    pack = HeaderPack::of_directories(std::string(toolkit.pack), std::move(roots), is_part);
    held = pack;
  }
  return pack;
}

std::shared_ptr<const HeaderPack> find_pack(const Toolkit& toolkit, CompilerKind kind,
                                            const fs::path& chosen, const CompilersOptions& options,
                                            HeaderPack::IsPart is_part) {
  const std::vector<fs::path> candidates =
      chosen.empty() ? places(toolkit, kind, options) : std::vector<fs::path>{chosen};
  std::vector<fs::path> roots;
  std::string tried;
  for (const fs::path& candidate : candidates) {
    tried += candidate.string() + "\n";
    if (!has(candidate, toolkit.marker)) continue;
    std::error_code ignored;
    for (const std::string_view folder : toolkit.within) {
      if (fs::is_directory(candidate / folder, ignored)) roots.push_back(candidate / folder);
    }
    roots.push_back(candidate);
    // A package of its own has what the toolkit's other headers stand on.
    const fs::path beside = (candidate / "../../cuda_cccl/include").lexically_normal();
    if (kind == CompilerKind::kNvrtc && fs::is_directory(beside, ignored)) roots.push_back(beside);
    return shared_pack(toolkit, std::move(roots), is_part);
  }
  return HeaderPack::absent(
      std::string(toolkit.pack),
      Error{ErrorCode::kNotFound,
            fmt::format("pack \"{}\": none of {} places has {}; install the toolkit's headers or "
                        "name their directory ({})",
                        toolkit.pack, candidates.size(), toolkit.marker, toolkit.option),
            tried});
}

}  // namespace

std::optional<Vendor> vendor_of_toolkit_pack(std::string_view name) {
  if (name == kCuda.pack) return Vendor::kNvidia;
  if (name == kHip.pack) return Vendor::kAmd;
  return std::nullopt;
}

std::shared_ptr<const HeaderPack> toolkit_pack(Vendor vendor, const CompilersOptions& options) {
  if (vendor == Vendor::kAmd) {
    return find_pack(kHip, CompilerKind::kHiprtc, options.hip_include, options, is_part<kHip>);
  }
  return find_pack(kCuda, CompilerKind::kNvrtc, options.cuda_include, options, is_part<kCuda>);
}

}  // namespace broach::specializer::own
