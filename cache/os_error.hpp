#pragma once

#include <string>
#include <string_view>

#include "broach/result.hpp"

namespace broach::cache {

/// An error of the operating system: "cannot write /a/b: No space left on device", with the
/// error's symbol ("ENOSPC") as its detail.
///
/// Errors:  kNotFound for ENOENT, kDenied for EACCES and EPERM, else kIo; EROFS has
///          kReadOnlyFileSystem as its reason.
Error os_error(std::string_view action, std::string_view object, int number);

/// "ENOSPC"
std::string errno_symbol(int number);

}  // namespace broach::cache
