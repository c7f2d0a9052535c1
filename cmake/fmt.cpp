// fmt, compiled once: Debian has its headers and a shared library, and a header that carries the
// whole implementation costs every file that formats a line three seconds of compile time.
#include <fmt/format-inl.h>

// What the header leaves to the compiled library.
FMT_BEGIN_NAMESPACE
namespace detail {
template FMT_API auto thousands_sep_impl<char>(locale_ref) -> thousands_sep_result<char>;
template FMT_API auto decimal_point_impl(locale_ref) -> char;
}  // namespace detail
FMT_END_NAMESPACE
