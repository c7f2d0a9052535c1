#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "broach/result.hpp"

namespace broach::specializer {

/// A 64-bit little-endian ELF file read into plain tables, every offset checked.
///
/// Errors:  kDamaged with what does not lie inside the file.
/// Owns:    its names; section bytes point into the caller's buffer.
struct ElfImage {
  struct Section {
    std::string name;
    std::uint32_t type = 0;
    std::uint64_t flags = 0;
    std::uint64_t address = 0;
    std::uint64_t size = 0;  ///< In memory: a section without bytes in the file has one too.
    std::uint32_t info = 0;
    std::span<const std::byte> bytes;
  };
  struct Symbol {
    std::string name;
    std::uint16_t section = 0;
    std::uint8_t type = 0;
    std::uint8_t bind = 0;
    std::uint64_t value = 0;
    std::uint64_t size = 0;
  };

  std::uint16_t machine = 0;
  std::uint32_t flags = 0;
  std::uint8_t os_abi = 0;
  std::uint8_t abi_version = 0;
  std::vector<Section> sections;        ///< By index.
  std::vector<Symbol> symbols;          ///< Of .symtab, by index; empty without one.
  std::vector<Symbol> dynamic_symbols;  ///< Of .dynsym.

  static Result<ElfImage> read(std::span<const std::byte> file);

  const Section* find(std::string_view name) const;

  /// The bytes in the file that are loaded at an address, or nothing.
  std::optional<std::span<const std::byte>> at_address(std::uint64_t address,
                                                       std::uint64_t size) const;
};

/// Reads one little-endian value at an offset that the caller checked.
std::uint32_t read_u32(std::span<const std::byte> bytes, std::size_t offset) noexcept;
std::uint16_t read_u16(std::span<const std::byte> bytes, std::size_t offset) noexcept;
std::uint64_t read_u64(std::span<const std::byte> bytes, std::size_t offset) noexcept;

}  // namespace broach::specializer
