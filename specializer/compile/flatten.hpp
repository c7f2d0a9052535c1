#pragma once

#include <span>
#include <string>

#include "broach/result.hpp"
#include "specializer/compile/protocol.hpp"

namespace broach::specializer::rtc {

/// Joins a main source and its virtual headers into one translation unit, so that a compiler
/// without virtual headers needs no include path.
///
/// `#include "name"` becomes the bytes of the source of exactly that name, once a translation
/// unit, between `#line` directives that keep messages in terms of the sources. So does
/// `#include <name>` where there is such a source; else it stays. Comments and string literals are
/// respected, raw ones included.
///
/// Errors:  kCompileFailed naming the including line and the missing header, or the bound that
///          the text would break.
Result<std::string> flatten(std::span<const Source> sources);

}  // namespace broach::specializer::rtc
