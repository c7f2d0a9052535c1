#include "specializer/compile/elf_build_id.hpp"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string_view>

#include "specializer/compile/unique_fd.hpp"

namespace broach::specializer::rtc {
namespace {

// Bounds on what a damaged file can make us read.
constexpr std::size_t kMaxProgramHeaders = 128;
constexpr std::size_t kMaxNoteBytes = std::size_t{64} << 10;

std::string hex(std::string_view bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string out;
  for (const char byte : bytes) {
    out.push_back(kDigits[static_cast<std::uint8_t>(byte) >> 4]);
    out.push_back(kDigits[static_cast<std::uint8_t>(byte) & 15]);
  }
  return out;
}

// Finds the build id in a PT_NOTE segment: name, descriptor and the next note are aligned to 4.
std::string build_id_in(std::string_view notes) {
  while (notes.size() >= sizeof(ElfW(Nhdr))) {
    ElfW(Nhdr) header;
    std::memcpy(&header, notes.data(), sizeof header);
    notes.remove_prefix(sizeof header);
    const std::size_t name_bytes = (std::size_t{header.n_namesz} + 3) & ~std::size_t{3};
    const std::size_t desc_bytes = (std::size_t{header.n_descsz} + 3) & ~std::size_t{3};
    if (name_bytes > notes.size() || header.n_descsz > notes.size() - name_bytes) return "";
    if (header.n_type == NT_GNU_BUILD_ID &&
        notes.substr(0, header.n_namesz) == std::string_view("GNU\0", 4)) {
      return hex(notes.substr(name_bytes, header.n_descsz));
    }
    notes.remove_prefix(std::min(notes.size(), name_bytes + desc_bytes));
  }
  return "";
}

bool read_at(int fd, std::uint64_t offset, void* out, std::size_t bytes) {
  return ::pread(fd, out, bytes, static_cast<off_t>(offset)) == static_cast<ssize_t>(bytes);
}

int collect(dl_phdr_info* info, std::size_t, void* out) {
  LoadedImage image;
  image.path = info->dlpi_name;
  for (ElfW(Half) i = 0; i < info->dlpi_phnum && image.build_id.empty(); ++i) {
    const ElfW(Phdr)& segment = info->dlpi_phdr[i];
    if (segment.p_type != PT_NOTE) continue;
    const auto* start = reinterpret_cast<const char*>(info->dlpi_addr + segment.p_vaddr);
    image.build_id = build_id_in(std::string_view(start, segment.p_memsz));
  }
  static_cast<std::vector<LoadedImage>*>(out)->push_back(std::move(image));
  return 0;
}

}  // namespace

Result<std::string> build_id_of(const std::filesystem::path& file) {
  const UniqueFd fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return Error{ErrorCode::kIo, file.string() + ": " + std::strerror(errno), ""};
  ElfW(Ehdr) header;
  if (!read_at(fd.get(), 0, &header, sizeof header) ||
      std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
      header.e_ident[EI_CLASS] != (sizeof(void*) == 8 ? ELFCLASS64 : ELFCLASS32) ||
      header.e_phentsize != sizeof(ElfW(Phdr)) || header.e_phnum > kMaxProgramHeaders) {
    return Error{ErrorCode::kDamaged, file.string() + " is not an ELF file of this machine", ""};
  }
  std::vector<ElfW(Phdr)> segments(header.e_phnum);
  if (!read_at(fd.get(), header.e_phoff, segments.data(), segments.size() * sizeof segments[0])) {
    return Error{ErrorCode::kDamaged, file.string() + " is cut off", ""};
  }
  for (const ElfW(Phdr) & segment : segments) {
    if (segment.p_type != PT_NOTE || segment.p_filesz > kMaxNoteBytes) continue;
    std::string notes(segment.p_filesz, '\0');
    if (!read_at(fd.get(), segment.p_offset, notes.data(), notes.size())) {
      return Error{ErrorCode::kDamaged, file.string() + " is cut off", ""};
    }
    if (std::string id = build_id_in(notes); !id.empty()) return id;
  }
  return std::string();
}

std::vector<LoadedImage> loaded_images() {
  std::vector<LoadedImage> images;
  ::dl_iterate_phdr(collect, &images);
  return images;
}

}  // namespace broach::specializer::rtc
