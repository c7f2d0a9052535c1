#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "specializer/compile/elf_build_id.hpp"
#include "tests/fuzz/target.hpp"

BROACH_FUZZ_TARGET(elf_build_id) {
  static const int file = ::memfd_create("elf", MFD_CLOEXEC);
  static const std::string path = "/proc/self/fd/" + std::to_string(file);
  if (::ftruncate(file, 0) != 0) std::abort();
  if (::pwrite(file, data, size, 0) != static_cast<ssize_t>(size)) std::abort();
  const auto id = broach::specializer::rtc::build_id_of(path);
  if (id && id->size() > 2 * size) std::abort();
  return 0;
}
