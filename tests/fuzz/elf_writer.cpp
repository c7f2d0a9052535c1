#include "tests/fuzz/elf_writer.hpp"

#include <algorithm>
#include <utility>

namespace broach::fuzz {

ElfWriter::ElfWriter(std::uint16_t machine, std::uint32_t flags, std::uint8_t os_abi,
                     std::uint8_t abi_version)
    : sections_(1), symbols_(1), strings_(1, '\0') {
  std::copy_n(ELFMAG, SELFMAG, header_.e_ident);
  header_.e_ident[EI_CLASS] = ELFCLASS64;
  header_.e_ident[EI_DATA] = ELFDATA2LSB;
  header_.e_ident[EI_VERSION] = EV_CURRENT;
  header_.e_ident[EI_OSABI] = os_abi;
  header_.e_ident[EI_ABIVERSION] = abi_version;
  header_.e_type = ET_DYN;
  header_.e_machine = machine;
  header_.e_version = EV_CURRENT;
  header_.e_flags = flags;
  header_.e_ehsize = sizeof header_;
  header_.e_phentsize = sizeof(Elf64_Phdr);
  header_.e_shentsize = sizeof(Elf64_Shdr);
}

std::uint32_t ElfWriter::section(std::string_view name, std::uint32_t type, std::uint64_t flags,
                                 std::string bytes, std::uint64_t memory_bytes) {
  Section& made = sections_.emplace_back();
  made.name = name;
  made.header.sh_type = type;
  made.header.sh_flags = flags;
  made.header.sh_addralign = 8;
  made.header.sh_size = type == SHT_NOBITS ? memory_bytes : bytes.size();
  made.bytes = std::move(bytes);
  return static_cast<std::uint32_t>(sections_.size() - 1);
}

void ElfWriter::symbol(std::string_view name, std::uint8_t type, std::uint32_t in_section,
                       std::uint64_t value, std::uint64_t size) {
  Elf64_Sym made{};
  made.st_name = static_cast<std::uint32_t>(strings_.size());
  made.st_info = static_cast<std::uint8_t>(ELF64_ST_INFO(STB_GLOBAL, type));
  made.st_shndx = static_cast<std::uint16_t>(in_section);
  made.st_value = value;
  made.st_size = size;
  symbols_.push_back(made);
  strings_.append(name).push_back('\0');
}

std::string ElfWriter::finish(std::uint32_t symbol_table) {
  const std::uint32_t strings = section(".strtab", SHT_STRTAB, 0, strings_);
  std::string table;
  for (const Elf64_Sym& each : symbols_) table += raw(each);
  const std::uint32_t symbols = section(".symbols", symbol_table, 0, table);
  sections_[symbols].header.sh_link = strings;
  sections_[symbols].header.sh_entsize = sizeof(Elf64_Sym);
  sections_[symbols].header.sh_info = 1;
  const std::uint32_t names = section(".shstrtab", SHT_STRTAB, 0, "");
  std::string& text = sections_[names].bytes;
  for (Section& each : sections_) {
    each.header.sh_name = static_cast<std::uint32_t>(text.size());
    text.append(each.name).push_back('\0');
  }
  sections_[names].header.sh_size = text.size();

  std::string file(sizeof header_, '\0');
  for (Section& each : sections_) {
    file.resize((file.size() + 7) / 8 * 8);
    each.header.sh_offset = each.header.sh_type == SHT_NULL ? 0 : file.size();
    // A section that is loaded is found by its address: the one it has in the file will do.
    if ((each.header.sh_flags & SHF_ALLOC) != 0) each.header.sh_addr = file.size();
    file += each.bytes;
  }
  file.resize((file.size() + 7) / 8 * 8);
  header_.e_shoff = file.size();
  header_.e_shnum = static_cast<std::uint16_t>(sections_.size());
  header_.e_shstrndx = static_cast<std::uint16_t>(names);
  for (const Section& each : sections_) file += raw(each.header);
  return raw(header_) + file.substr(sizeof header_);
}

}  // namespace broach::fuzz
