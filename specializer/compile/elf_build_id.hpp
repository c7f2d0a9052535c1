#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "broach/result.hpp"

namespace broach::specializer::rtc {

/// The GNU build id of an ELF file as hexadecimal digits; empty when it states none.
///
/// Errors:  kIo when the file cannot be read; kDamaged when it is no ELF file of this machine.
Result<std::string> build_id_of(const std::filesystem::path& file);

struct LoadedImage {
  std::string path;      ///< As the loader names it.
  std::string build_id;  ///< Empty when it states none.
};

/// The shared objects mapped in this process, in load order.
std::vector<LoadedImage> loaded_images();

}  // namespace broach::specializer::rtc
