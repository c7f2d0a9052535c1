#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "broach/result.hpp"

namespace broach::rtc {

/// The files that a rule of make lists after its target ("a.o: b.h \\"), as compilers write it.
std::vector<std::string> prerequisites(std::string_view rule);

/// Compares what a compiler says that it read, in a file of such a rule, with what it was given,
/// and removes the file. A name that is no file of this machine is a virtual one. A compiler that
/// wrote no list says nothing.
///
/// Errors:  kCompileFailed naming the first file that is a stranger: the key does not hold it.
Result<void> check_files_read(const std::filesystem::path& list,
                              const std::function<bool(const std::string&)>& is_own);

}  // namespace broach::rtc
