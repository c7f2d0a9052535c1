#include "specializer/limits/elf_image.hpp"

#include <fmt/core.h>
#include <gelf.h>
#include <libelf.h>

#include <algorithm>
#include <cstring>
#include <memory>

namespace broach::specializer {
namespace {

struct ElfCloser {
  void operator()(Elf* elf) const noexcept { elf_end(elf); }
};
using ElfHandle = std::unique_ptr<Elf, ElfCloser>;

Error damaged(std::string message) {
  return Error{ErrorCode::kDamaged, "ELF file: " + std::move(message), ""};
}

std::string name_at(Elf* elf, std::size_t strings, std::size_t offset) {
  const char* const name = elf_strptr(elf, strings, offset);
  return name == nullptr ? std::string() : std::string(name);
}

Result<std::vector<ElfImage::Symbol>> read_symbols(Elf* elf, Elf_Scn* section,
                                                   const GElf_Shdr& header) {
  Elf_Data* const data = elf_getdata(section, nullptr);
  if (data == nullptr || data->d_buf == nullptr) return std::vector<ElfImage::Symbol>{};
  const std::size_t count = data->d_size / sizeof(Elf64_Sym);
  std::vector<ElfImage::Symbol> symbols;
  symbols.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    GElf_Sym symbol;
    if (gelf_getsym(data, static_cast<int>(i), &symbol) == nullptr) {
      return damaged(fmt::format("symbol {} of {} does not read", i, count));
    }
    symbols.push_back({name_at(elf, header.sh_link, symbol.st_name), symbol.st_shndx,
                       static_cast<std::uint8_t>(GELF_ST_TYPE(symbol.st_info)),
                       static_cast<std::uint8_t>(GELF_ST_BIND(symbol.st_info)), symbol.st_value,
                       symbol.st_size});
  }
  return symbols;
}

template <class T>
T read_little(std::span<const std::byte> bytes, std::size_t offset) noexcept {
  T value = 0;
  for (std::size_t i = sizeof(T); i-- > 0;) {
    value = static_cast<T>((value << 8) | std::to_integer<T>(bytes[offset + i]));
  }
  return value;
}

}  // namespace

std::uint16_t read_u16(std::span<const std::byte> bytes, std::size_t offset) noexcept {
  return read_little<std::uint16_t>(bytes, offset);
}
std::uint32_t read_u32(std::span<const std::byte> bytes, std::size_t offset) noexcept {
  return read_little<std::uint32_t>(bytes, offset);
}
std::uint64_t read_u64(std::span<const std::byte> bytes, std::size_t offset) noexcept {
  return read_little<std::uint64_t>(bytes, offset);
}

Result<ElfImage> ElfImage::read(std::span<const std::byte> file) {
  if (elf_version(EV_CURRENT) == EV_NONE) return damaged("libelf is older than this program");
  if (file.size() < sizeof(Elf64_Ehdr) || std::memcmp(file.data(), ELFMAG, SELFMAG) != 0) {
    return damaged(fmt::format("{} bytes that do not start with an ELF header", file.size()));
  }
  if (std::to_integer<int>(file[EI_CLASS]) != ELFCLASS64 ||
      std::to_integer<int>(file[EI_DATA]) != ELFDATA2LSB) {
    return damaged("not a 64-bit little-endian file");
  }
  // libelf wants an aligned buffer that it may call its own.
  std::vector<std::uint64_t> copy((file.size() + 7) / 8);
  std::memcpy(copy.data(), file.data(), file.size());
  const ElfHandle elf(elf_memory(reinterpret_cast<char*>(copy.data()), file.size()));
  GElf_Ehdr header;
  std::size_t names = 0, count = 0;
  if (!elf || elf_kind(elf.get()) != ELF_K_ELF || gelf_getehdr(elf.get(), &header) == nullptr ||
      elf_getshdrstrndx(elf.get(), &names) != 0 || elf_getshdrnum(elf.get(), &count) != 0) {
    return damaged(fmt::format("the header does not read: {}", elf_errmsg(-1)));
  }

  ElfImage image;
  image.machine = header.e_machine;
  image.flags = header.e_flags;
  image.os_abi = header.e_ident[EI_OSABI];
  image.abi_version = header.e_ident[EI_ABIVERSION];
  image.sections.reserve(std::min<std::size_t>(count, file.size() / sizeof(Elf64_Shdr)));
  for (std::size_t i = 0; i < count; ++i) {
    Elf_Scn* const handle = elf_getscn(elf.get(), i);
    GElf_Shdr section;
    if (handle == nullptr || gelf_getshdr(handle, &section) == nullptr) {
      return damaged(fmt::format("section {} of {} does not read: {}", i, count, elf_errmsg(-1)));
    }
    Section row{name_at(elf.get(), names, section.sh_name),
                section.sh_type,
                section.sh_flags,
                section.sh_addr,
                section.sh_size,
                section.sh_info,
                {}};
    if (section.sh_type != SHT_NOBITS && section.sh_type != SHT_NULL) {
      if (section.sh_offset > file.size() || section.sh_size > file.size() - section.sh_offset) {
        return damaged(fmt::format("section {} \"{}\" ends at byte {} of {}", i, row.name,
                                   section.sh_offset + section.sh_size, file.size()));
      }
      row.bytes = file.subspan(section.sh_offset, section.sh_size);
    }
    image.sections.push_back(std::move(row));
    if (section.sh_type == SHT_SYMTAB || section.sh_type == SHT_DYNSYM) {
      auto symbols = read_symbols(elf.get(), handle, section);
      if (!symbols) return symbols.error();
      (section.sh_type == SHT_SYMTAB ? image.symbols : image.dynamic_symbols) = std::move(*symbols);
    }
  }
  return image;
}

const ElfImage::Section* ElfImage::find(std::string_view name) const {
  const auto section = std::find_if(sections.begin(), sections.end(),
                                    [&](const Section& each) { return each.name == name; });
  return section == sections.end() ? nullptr : &*section;
}

std::optional<std::span<const std::byte>> ElfImage::at_address(std::uint64_t address,
                                                               std::uint64_t size) const {
  for (const Section& section : sections) {
    if ((section.flags & SHF_ALLOC) == 0 || address < section.address) continue;
    const std::uint64_t offset = address - section.address;
    if (offset > section.bytes.size() || size > section.bytes.size() - offset) continue;
    return section.bytes.subspan(offset, size);
  }
  return std::nullopt;
}

}  // namespace broach::specializer
