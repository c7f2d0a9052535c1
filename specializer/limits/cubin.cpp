#include "specializer/limits/cubin.hpp"

#include <elf.h>
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <optional>
#include <string>

#include "specializer/limits/elf_image.hpp"
#include "specializer/limits/geometry.hpp"
#include "specializer/limits/ptxas_log.hpp"

namespace broach::specializer {
namespace {

constexpr std::uint16_t kMachineCuda = 190;
constexpr std::uint8_t kAbiOfToolkit13 = 8;

// Attributes of .nv.info sections. NVIDIA documents none of them: docs/limits.md says how each was
// worked out against ptxas's reports.
enum class Attribute : std::uint8_t {
  kMaxThreads = 0x05,       // x, y, z of __launch_bounds__ or .maxntid
  kRequiredThreads = 0x10,  // x, y, z of .reqntid
  kFrameBytes = 0x11,       // symbol, bytes
  kStackBytes = 0x12,       // symbol, bytes with callees; all ones where that is not known
  kParameter = 0x17,        // index, ordinal and offset, size in bits 18-31
  kParameterSpace = 0x19,   // bytes of all parameters, in the record itself
  kRegisters = 0x2f,        // symbol, registers
  kCluster = 0x3d,          // x, y, z of __cluster_dims__
  kLargeParameter = 0x45,   // index, ordinal and offset, size in bits 0-15
  kBarriers = 0x4c,         // a byte in the record itself
  kSpills = 0x55,           // pairs of a kind and an instruction's offset in .text.<function>
};
constexpr std::uint32_t kUnknownStack = 0xffffffff;
constexpr std::uint8_t kFormSized = 4;  // Length in the record, then that many bytes.

struct Record {
  Attribute attribute;
  std::uint8_t form;
  std::span<const std::byte> value;
};

Error damaged(std::string message) {
  return Error{ErrorCode::kDamaged, "cubin: " + std::move(message), ""};
}

// Takes a .nv.info section apart: a form, an attribute, then two bytes that are a value or, in the
// sized form, the length of one.
Result<std::vector<Record>> records_of(const ElfImage::Section& section) {
  std::vector<Record> records;
  const std::span<const std::byte> bytes = section.bytes;
  for (std::size_t at = 0; at < bytes.size();) {
    if (bytes.size() - at < 4) {
      return damaged(fmt::format("{} ends inside the record at byte {}", section.name, at));
    }
    Record record{static_cast<Attribute>(bytes[at + 1]), std::to_integer<std::uint8_t>(bytes[at]),
                  bytes.subspan(at + 2, 2)};
    at += 4;
    if (record.form == kFormSized) {
      const std::size_t size = read_u16(record.value, 0);
      if (size > bytes.size() - at) {
        return damaged(
            fmt::format("{} ends inside a value of {} bytes at byte {}", section.name, size, at));
      }
      record.value = bytes.subspan(at, size);
      at += size;
    }
    records.push_back(record);
  }
  return records;
}

// The last figure that a list of (symbol, figure) records gives a symbol.
std::optional<std::uint32_t> figure_of(std::span<const Record> records, Attribute attribute,
                                       std::size_t symbol) {
  std::optional<std::uint32_t> figure;
  for (const Record& record : records) {
    if (record.attribute != attribute || record.form != kFormSized || record.value.size() < 8) {
      continue;
    }
    if (read_u32(record.value, 0) == symbol) figure = read_u32(record.value, 4);
  }
  return figure;
}

std::optional<std::uint32_t> product_of(const Record& record) {
  if (record.form != kFormSized || record.value.size() < 12) return std::nullopt;
  std::uint64_t product = 1;
  for (std::size_t i = 0; i < 12; i += 4) {
    product *= std::min<std::uint64_t>(read_u32(record.value, i), 1U << 20);
    product = std::min<std::uint64_t>(product, std::numeric_limits<std::uint32_t>::max());
  }
  return static_cast<std::uint32_t>(product);
}

// Bytes that the listed instructions store to local memory. Spills to shared memory are listed
// too; they count as shared memory. Nothing where an instruction is none that is known.
std::optional<std::uint32_t> spilled_by(std::span<const std::byte> list,
                                        std::span<const std::byte> code) {
  constexpr std::uint32_t kStoreLocal = 0x387, kLoadLocal = 0x983;
  constexpr std::uint32_t kStoreShared = 0x388, kLoadShared = 0x984;
  constexpr std::size_t kInstructionBytes = 16;
  if (list.size() % 8 != 0) return std::nullopt;
  std::uint32_t bytes = 0;
  for (std::size_t at = 0; at < list.size(); at += 8) {
    const std::uint32_t offset = read_u32(list, at + 4);
    if (code.size() < kInstructionBytes || offset > code.size() - kInstructionBytes) {
      return std::nullopt;
    }
    const std::uint32_t opcode = read_u32(code, offset) & 0xfff;
    // Bits 73-75 of a memory instruction: 4, 5, 6 for 4, 8, 16 bytes; less for 1 and 2.
    const std::uint32_t width = (read_u32(code, offset + 8) >> 9) & 7;
    switch (opcode) {
      case kStoreLocal:
        if (width > 6) return std::nullopt;
        bytes += width < 2 ? 1 : width < 4 ? 2 : 4U << (width - 4);
        break;
      case kLoadLocal:
      case kStoreShared:
      case kLoadShared:
        break;
      default:
        return std::nullopt;
    }
  }
  return bytes;
}

// Three dimensions of a record, or none.
std::optional<std::array<std::uint32_t, 3>> dims_of(const Record& record) {
  if (record.form != kFormSized || record.value.size() < 12) return std::nullopt;
  return std::array{read_u32(record.value, 0), read_u32(record.value, 4),
                    read_u32(record.value, 8)};
}

// The size of each parameter by its ordinal. Nothing where the records do not make up the space
// that they fill.
std::optional<std::vector<std::uint32_t>> parameters_of(std::span<const Record> records) {
  std::map<std::uint32_t, std::uint32_t> sizes;
  std::uint32_t space = 0, end = 0;
  for (const Record& record : records) {
    if (record.attribute == Attribute::kParameterSpace && record.form != kFormSized) {
      space = read_u16(record.value, 0);
    }
    const bool large = record.attribute == Attribute::kLargeParameter;
    if (!large && record.attribute != Attribute::kParameter) continue;
    if (record.form != kFormSized || record.value.size() < 12) return std::nullopt;
    const std::uint32_t size = large ? read_u16(record.value, 8) : read_u32(record.value, 8) >> 18;
    if (!sizes.emplace(read_u16(record.value, 4), size).second) return std::nullopt;
    end = std::max(end, read_u16(record.value, 6) + size);
  }
  // The ordinals are distinct: they are all there when the last is their number less one.
  if (end != space || (!sizes.empty() && sizes.rbegin()->first != sizes.size() - 1)) {
    return std::nullopt;
  }
  std::vector<std::uint32_t> in_order;
  for (const auto& [ordinal, size] : sizes) in_order.push_back(size);
  return in_order;
}

// Registers that an instruction can name; with the one that reads as zero they are 256.
constexpr std::uint32_t kMostRegisters = 256;

// Threads a block that the register file holds: registers go to a warp in units of 8 a thread,
// and warps to four partitions that each own a quarter of the file.
std::uint32_t threads_by_registers(std::uint32_t registers, const Target& target) {
  constexpr std::uint32_t kPartitions = 4, kUnit = 8;
  const std::uint32_t a_thread = std::max(kUnit, (registers + kUnit - 1) / kUnit * kUnit);
  const std::uint32_t a_warp = a_thread * target.warp_width;
  const std::uint32_t warps = target.registers_per_block / kPartitions / a_warp * kPartitions;
  return std::min(target.max_threads_per_block, warps * target.warp_width);
}

class CubinReader {
 public:
  CubinReader(const ElfImage& image, const Target& target, std::uint32_t chip, std::string_view log)
      : image_(image), target_(target), chip_(chip), log_(log) {}

  Result<void> open() {
    const ElfImage::Section* const info = image_.find(".nv.info");
    if (info == nullptr) return damaged("there is no .nv.info section");
    auto records = records_of(*info);
    if (!records) return records.error();
    module_records_ = std::move(*records);
    return {};
  }

  Result<LaunchLimits> read(const std::string& function) {
    const ElfImage::Section* const text = image_.find(".text." + function);
    const std::optional<std::size_t> symbol = symbol_of(function);
    if (text == nullptr || !symbol) {
      return damaged(fmt::format("there is no function \"{}\"; it has {}", function, functions()));
    }
    std::vector<Record> records;
    if (const ElfImage::Section* const info = image_.find(".nv.info." + function)) {
      auto parsed = records_of(*info);
      if (!parsed) return parsed.error();
      records = std::move(*parsed);
    }
    LaunchLimits limits;
    limits.function = function;
    limits.source = "cubin";
    limits.registers = figure_of(module_records_, Attribute::kRegisters, *symbol);
    if (!limits.registers && image_.abi_version < kAbiOfToolkit13) {
      limits.registers = text->info >> 24;  // Where it was before the list.
    }
    if (!limits.registers) return damaged(fmt::format("no register count of {}", function));
    if (*limits.registers > kMostRegisters) {
      return damaged(fmt::format("{} registers a thread of {}; a chip has {}", *limits.registers,
                                 function, kMostRegisters));
    }
    read_launch(records, *text, limits);
    read_memory(function, limits);
    const auto frame = figure_of(module_records_, Attribute::kFrameBytes, *symbol);
    const auto stack = figure_of(module_records_, Attribute::kStackBytes, *symbol);
    limits.stack_bytes = stack ? stack : frame;
    if (limits.stack_bytes == kUnknownStack) limits.stack_bytes.reset();
    read_spills(function, records, *text, frame, limits);
    limits.parameter_bytes = parameters_of(records);
    if (auto read = read_geometry(records, limits); !read) return read.error();
    return limits;
  }

 private:
  void read_launch(std::span<const Record> records, const ElfImage::Section& text,
                   LaunchLimits& limits) const {
    // Before toolkit 13 the barriers were seven bits of the section's flags.
    limits.barriers = image_.abi_version < kAbiOfToolkit13
                          ? static_cast<std::uint32_t>((text.flags >> 20) & 0x7f)
                          : 0;
    for (const Record& record : records) {
      if (record.attribute == Attribute::kBarriers && record.form != kFormSized) {
        limits.barriers = std::to_integer<std::uint32_t>(record.value[0]);
      }
      if (record.attribute == Attribute::kMaxThreads ||
          record.attribute == Attribute::kRequiredThreads) {
        limits.launch_bounds = product_of(record);
      }
    }
    limits.max_threads = threads_by_registers(*limits.registers, target_);
    if (limits.launch_bounds && *limits.launch_bounds > 0) {
      limits.max_threads = std::min(*limits.max_threads, *limits.launch_bounds);
    }
    limits.wave_size = target_.warp_width;
  }

  // What the code was compiled for, and what the kernel states beside it.
  Result<void> read_geometry(std::span<const Record> records, LaunchLimits& limits) const {
    for (const Record& record : records) {
      const auto dims = dims_of(record);
      if (!dims) continue;
      const auto [x, y, z] = *dims;
      if (record.attribute == Attribute::kRequiredThreads) {
        limits.block_x = x;
        limits.block_y = y;
        limits.block_z = z;
      }
      // Code whose blocks are its clusters has one of a single block.
      if (record.attribute == Attribute::kCluster && (x != 1 || y != 1 || z != 1)) {
        limits.cluster_x = x;
        limits.cluster_y = y;
        limits.cluster_z = z;
      }
    }
    const std::string name = geometry_name(limits.function);
    for (const ElfImage::Symbol& symbol : image_.symbols) {
      if (symbol.type != STT_OBJECT || symbol.name != name) continue;
      const std::span<const std::byte> held = symbol.section < image_.sections.size()
                                                  ? image_.sections[symbol.section].bytes
                                                  : std::span<const std::byte>{};
      if (symbol.value > held.size() || symbol.size > held.size() - symbol.value) {
        return damaged(fmt::format("\"{}\" lies outside its section", name));
      }
      auto fault = take_geometry(held.subspan(symbol.value, symbol.size), limits);
      if (fault) return damaged(*std::move(fault));
      break;
    }
    return {};
  }

  void read_memory(const std::string& function, LaunchLimits& limits) const {
    // From sm_90 on the section starts with the 1 KiB that the system keeps for itself; it is not
    // part of the opt-in limit either.
    constexpr std::uint32_t kFirstChip = 90;
    constexpr std::uint64_t kReserved = 1024;
    std::uint64_t shared = size_of(".nv.shared." + function);
    if (chip_ >= kFirstChip) shared -= std::min(shared, kReserved);
    constexpr std::uint64_t kMost = std::numeric_limits<std::uint32_t>::max();
    limits.static_shared = static_cast<std::uint32_t>(std::min(shared, kMost));
    limits.max_dynamic_shared =
        target_.max_shared_bytes - std::min(target_.max_shared_bytes, *limits.static_shared);
    limits.constant_bytes = static_cast<std::uint32_t>(std::min(size_of(".nv.constant3"), kMost));
  }

  void read_spills(const std::string& function, std::span<const Record> records,
                   const ElfImage::Section& text, std::optional<std::uint32_t> frame,
                   LaunchLimits& limits) const {
    const auto list = std::find_if(records.begin(), records.end(), [](const Record& record) {
      return record.attribute == Attribute::kSpills && record.form == kFormSized;
    });
    // What functions that were not inlined save on entry is on no list.
    const std::vector<std::string> callees = callees_of(function);
    if (callees.empty()) {
      if (list != records.end()) {
        limits.spill_bytes = spilled_by(list->value, text.bytes);
      } else if (frame == 0U || image_.abi_version >= kAbiOfToolkit13) {
        limits.spill_bytes = 0;
      }
      if (limits.spill_bytes) return;
    }
    auto reported = ptxas_properties(log_, function);
    if (!reported) return;
    std::uint32_t bytes = reported->spill_store_bytes;
    for (const std::string& callee : callees) {
      reported = ptxas_properties(log_, callee);
      if (!reported) return;
      bytes += reported->spill_store_bytes;
    }
    limits.spill_bytes = bytes;
    limits.source = "cubin; spills from ptxas's log";
  }

  // A function that was not inlined is a local symbol "$<entry>$<name>" of the entry's code.
  std::vector<std::string> callees_of(const std::string& function) const {
    const std::string prefix = "$" + function + "$";
    std::vector<std::string> names;
    for (const ElfImage::Symbol& symbol : image_.symbols) {
      if (symbol.type == STT_FUNC && symbol.name.starts_with(prefix)) {
        names.push_back(symbol.name.substr(prefix.size()));
      }
    }
    return names;
  }

  std::optional<std::size_t> symbol_of(std::string_view function) const {
    for (std::size_t i = 0; i < image_.symbols.size(); ++i) {
      const ElfImage::Symbol& symbol = image_.symbols[i];
      if (symbol.type == STT_FUNC && symbol.bind != STB_LOCAL && symbol.name == function) return i;
    }
    return std::nullopt;
  }

  std::string functions() const {
    std::string names;
    for (const ElfImage::Symbol& symbol : image_.symbols) {
      if (symbol.type != STT_FUNC || symbol.bind == STB_LOCAL) continue;
      names += fmt::format("{}{}", names.empty() ? "" : ", ", symbol.name);
    }
    return names.empty() ? "none" : names;
  }

  std::uint64_t size_of(std::string_view section) const {
    const ElfImage::Section* const found = image_.find(section);
    return found == nullptr ? 0 : found->size;
  }

  const ElfImage& image_;
  const Target& target_;
  std::uint32_t chip_;
  std::string_view log_;
  std::vector<Record> module_records_;
};

// "sm_90a" of e_flags: bits 8-15 in toolkit 13's ABI, the lowest byte before it.
std::uint32_t chip_number(const ElfImage& image) {
  return image.abi_version >= kAbiOfToolkit13 ? (image.flags >> 8) & 0xff : image.flags & 0xff;
}

}  // namespace

Result<std::vector<LaunchLimits>> read_cubin(std::span<const KernelEntry> entries,
                                             const Target& target,
                                             std::span<const std::byte> binary,
                                             std::string_view compile_log) {
  auto image = ElfImage::read(binary);
  if (!image) return damaged(image.error().message);
  if (image->machine != kMachineCuda) {
    return damaged(fmt::format("ELF machine {} is not CUDA's {}", image->machine, kMachineCuda));
  }
  const std::uint32_t number = chip_number(*image);
  const std::string chip = fmt::format("sm_{}", number);
  // What an `a` or an `f` adds is not in the flags.
  if (target.name != chip && target.name != chip + "a" && target.name != chip + "f") {
    return damaged(fmt::format("it was built for {}, not for {}", chip, target.name));
  }
  CubinReader reader(*image, target, number, compile_log);
  if (auto opened = reader.open(); !opened) return opened.error();
  std::vector<LaunchLimits> rows;
  rows.reserve(entries.size());
  for (const KernelEntry& entry : entries) {
    auto limits = reader.read(entry.function);
    if (!limits) return limits.error();
    rows.push_back(std::move(*limits));
  }
  return rows;
}

}  // namespace broach::specializer
