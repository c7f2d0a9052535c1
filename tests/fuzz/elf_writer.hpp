#pragma once

#include <elf.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace broach::fuzz {

/// Writes small 64-bit little-endian ELF files, so that seeds need no compiler.
class ElfWriter {
 public:
  ElfWriter(std::uint16_t machine, std::uint32_t flags, std::uint8_t os_abi,
            std::uint8_t abi_version);

  /// Appends a section and returns its index. `memory_bytes` counts for SHT_NOBITS alone.
  std::uint32_t section(std::string_view name, std::uint32_t type, std::uint64_t flags,
                        std::string bytes, std::uint64_t memory_bytes = 0);

  /// Adds a global symbol of the one symbol table, which `finish` writes.
  void symbol(std::string_view name, std::uint8_t type, std::uint32_t in_section,
              std::uint64_t value, std::uint64_t size);

  /// The file. `symbol_table` is SHT_SYMTAB or SHT_DYNSYM.
  std::string finish(std::uint32_t symbol_table);

 private:
  struct Section {
    std::string name;
    Elf64_Shdr header{};
    std::string bytes;
  };

  Elf64_Ehdr header_{};
  std::vector<Section> sections_;
  std::vector<Elf64_Sym> symbols_;
  std::string strings_;
};

/// The bytes of a plain value.
template <class Value>
std::string raw(const Value& value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

}  // namespace broach::fuzz
