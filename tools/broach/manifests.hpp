#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "broach/result.hpp"
#include "kernel_src/embedded.hpp"
#include "specializer/manifest.hpp"

namespace broach {

/// The manifests of tools/manifests/, as they were when the program was built: "gemma-4.json".
extern const std::span<const EmbeddedFile> kManifests;

namespace tool {

/// The shipped manifests' names, without ".json", sorted.
std::vector<std::string_view> shipped_manifests();

/// Reads a shipped manifest by name, or a file.
///
/// Errors:  kInvalidArgument when there is neither, naming the shipped ones, and read_manifest's;
///          kIo when a file cannot be read.
Result<specializer::Manifest> load_manifest(const std::string& name,
                                            const specializer::FamilySet& families = {});

}  // namespace tool
}  // namespace broach
