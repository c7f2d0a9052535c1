#include "specializer/limits/code_object.hpp"

#include <elf.h>
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "specializer/limits/elf_image.hpp"
#include "specializer/limits/geometry.hpp"

namespace broach::specializer {
namespace {

using Json = nlohmann::json;

constexpr std::uint16_t kMachineAmdGpu = 224;
constexpr std::uint32_t kNoteMetadata = 32;
constexpr std::string_view kNoteOwner = "AMDGPU";
constexpr std::string_view kBundleMagic = "__CLANG_OFFLOAD_BUNDLE__";
constexpr std::string_view kCompressedBundleMagic = "CCOB";
constexpr std::uint32_t kMostThreads = 1024;

Error damaged(std::string message) {
  return Error{ErrorCode::kDamaged, "code object: " + std::move(message), ""};
}

bool starts_with(std::span<const std::byte> bytes, std::string_view text) {
  return bytes.size() >= text.size() && std::memcmp(bytes.data(), text.data(), text.size()) == 0;
}

// "gfx90a:xnack-" of "hipv4-amdgcn-amd-amdhsa--gfx90a:xnack-": the target id is what follows the
// empty environment of the triple.
std::string_view target_id(std::string_view triple) {
  const std::size_t dashes = triple.rfind("--");
  return dashes == std::string_view::npos ? triple : triple.substr(dashes + 2);
}

// A binary serves a target when the processors are the same and every feature that the target
// names is the binary's too.
bool serves(std::string_view binary_id, std::string_view target_name) {
  const auto take = [](std::string_view& text) {
    const std::string_view word = text.substr(0, text.find(':'));
    text.remove_prefix(std::min(word.size() + 1, text.size()));
    return word;
  };
  if (take(binary_id) != take(target_name)) return false;
  while (!target_name.empty()) {
    const std::string_view feature = take(target_name);
    std::string_view rest = binary_id;
    bool found = false;
    while (!rest.empty()) found = take(rest) == feature || found;
    if (!found) return false;
  }
  return true;
}

// Refuses nesting that would exhaust the stack of the recursive reader.
class DepthCheck : public nlohmann::json_sax<Json> {
 public:
  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool key(string_t&) override { return true; }
  bool start_object(std::size_t) override { return ++depth_ <= kMost; }
  bool start_array(std::size_t) override { return ++depth_ <= kMost; }
  bool end_object() override { return depth_-- > 0; }
  bool end_array() override { return depth_-- > 0; }
  bool parse_error(std::size_t, const std::string&, const Json::exception&) override {
    return false;
  }

 private:
  static constexpr int kMost = 16;  // Metadata has five.
  int depth_ = 0;
};

// The descriptor of the metadata note in a section of notes, each padded to four bytes.
std::optional<std::span<const std::byte>> metadata_of(std::span<const std::byte> notes) {
  constexpr std::size_t kHeader = 12;
  const auto padded = [](std::uint64_t size) { return (size + 3) & ~std::uint64_t{3}; };
  while (notes.size() >= kHeader) {
    const std::uint64_t name_size = read_u32(notes, 0), size = read_u32(notes, 4);
    const std::uint32_t type = read_u32(notes, 8);
    const std::uint64_t start = kHeader + padded(name_size);
    if (start > notes.size() || size > notes.size() - start) return std::nullopt;
    if (type == kNoteMetadata && starts_with(notes.subspan(kHeader), kNoteOwner)) {
      return notes.subspan(start, size);
    }
    notes = notes.subspan(std::min<std::uint64_t>(start + padded(size), notes.size()));
  }
  return std::nullopt;
}

Result<Json> read_metadata(const ElfImage& image) {
  for (const ElfImage::Section& section : image.sections) {
    if (section.type != SHT_NOTE) continue;
    const auto note = metadata_of(section.bytes);
    if (!note) continue;
    const auto* const first = reinterpret_cast<const std::uint8_t*>(note->data());
    DepthCheck depth;
    if (!Json::sax_parse(first, first + note->size(), &depth, Json::input_format_t::msgpack)) {
      return damaged("its metadata is not MessagePack of a sane depth");
    }
    Json json = Json::from_msgpack(first, first + note->size(), true, false);
    if (!json.is_object()) return damaged("its metadata is no map");
    return json;
  }
  return damaged("there is no NT_AMDGPU_METADATA note");
}

std::optional<std::uint32_t> figure(const Json& kernel, const char* name) {
  const auto found = kernel.find(name);
  if (found == kernel.end() || !found->is_number_unsigned()) return std::nullopt;
  const std::uint64_t value = found->get<std::uint64_t>();
  if (value > std::numeric_limits<std::uint32_t>::max()) return std::nullopt;
  return static_cast<std::uint32_t>(value);
}

std::string text(const Json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

// The three sizes of a list, or none.
std::optional<std::array<std::uint32_t, 3>> dims_of(const Json& kernel, const char* name) {
  const auto found = kernel.find(name);
  if (found == kernel.end() || !found->is_array() || found->size() != 3) return std::nullopt;
  std::array<std::uint32_t, 3> dims{};
  for (std::size_t i = 0; i < dims.size(); ++i) {
    const Json& size = (*found)[i];
    if (!size.is_number_unsigned() || size.get<std::uint64_t>() > kMostThreads) return std::nullopt;
    dims[i] = size.get<std::uint32_t>();
  }
  return dims;
}

// What a launch passes: hidden arguments come from the run time. A kernel without arguments has
// no list.
std::optional<std::vector<std::uint32_t>> parameters_of(const Json& kernel) {
  const auto arguments = kernel.find(".args");
  if (arguments == kernel.end()) {
    if (figure(kernel, ".kernarg_segment_size") == 0U) return std::vector<std::uint32_t>{};
    return std::nullopt;
  }
  if (!arguments->is_array()) return std::nullopt;
  std::vector<std::uint32_t> sizes;
  for (const Json& argument : *arguments) {
    if (!argument.is_object()) return std::nullopt;
    if (text(argument, ".value_kind").starts_with("hidden_")) continue;
    const auto size = figure(argument, ".size");
    if (!size) return std::nullopt;
    sizes.push_back(*size);
  }
  return sizes;
}

Result<LaunchLimits> limits_of(const ElfImage& image, const Json& kernel,
                               const std::string& function, const Target& target) {
  LaunchLimits limits;
  limits.function = function;
  limits.source = "code object metadata";
  limits.vgprs = figure(kernel, ".vgpr_count");
  limits.agprs = figure(kernel, ".agpr_count");
  limits.sgprs = figure(kernel, ".sgpr_count");
  limits.vgpr_spills = figure(kernel, ".vgpr_spill_count");
  limits.sgpr_spills = figure(kernel, ".sgpr_spill_count");
  limits.static_shared = figure(kernel, ".group_segment_fixed_size");
  limits.stack_bytes = figure(kernel, ".private_segment_fixed_size");
  limits.wave_size = figure(kernel, ".wavefront_size");
  limits.max_threads = figure(kernel, ".max_flat_workgroup_size");
  if (!limits.vgprs || !limits.sgprs || !limits.static_shared || !limits.max_threads) {
    return damaged(
        fmt::format("the metadata of \"{}\" lacks a count that every compiler writes", function));
  }
  limits.registers = limits.vgprs;
  // The workgroup size the code was made for; __launch_bounds__ sets it.
  limits.launch_bounds = limits.max_threads;
  // A spilled vector register is 4 bytes of scratch a thread; spilled scalars go to vector
  // registers, or are among these.
  if (limits.vgpr_spills) limits.spill_bytes = std::min(*limits.vgpr_spills, 1U << 20) * 4;
  limits.max_dynamic_shared =
      target.max_shared_bytes - std::min(target.max_shared_bytes, *limits.static_shared);
  const auto dynamic = kernel.find(".uses_dynamic_stack");
  if (dynamic != kernel.end() && dynamic->is_boolean() && dynamic->get<bool>()) {
    limits.stack_bytes.reset();  // The fixed part is not all of it.
  }
  limits.parameter_bytes = parameters_of(kernel);
  if (const auto block = dims_of(kernel, ".reqd_workgroup_size")) {
    limits.block_x = (*block)[0];
    limits.block_y = (*block)[1];
    limits.block_z = (*block)[2];
  }
  if (auto fault = take_geometry_at_address(image, limits)) return damaged(*std::move(fault));
  return limits;
}

}  // namespace

Result<std::span<const std::byte>> unwrap_bundle(const Target& target,
                                                 std::span<const std::byte> binary) {
  if (starts_with(binary, kCompressedBundleMagic)) {
    return damaged("it is a compressed offload bundle; compile without --offload-compress");
  }
  if (!starts_with(binary, kBundleMagic)) return binary;
  std::size_t at = kBundleMagic.size();
  const auto take = [&](std::uint64_t& value) {
    if (binary.size() - at < 8) return false;
    value = read_u64(binary, at);
    at += 8;
    return true;
  };
  std::uint64_t count = 0;
  if (!take(count)) return damaged("the bundle ends in its header");
  std::string held;
  for (std::uint64_t i = 0; i < count; ++i) {
    std::uint64_t offset = 0, size = 0, name_size = 0;
    if (!take(offset) || !take(size) || !take(name_size) || name_size > binary.size() - at) {
      return damaged(fmt::format("the bundle ends in its entry {} of {}", i, count));
    }
    const std::string_view triple(reinterpret_cast<const char*>(binary.data()) + at,
                                  static_cast<std::size_t>(name_size));
    at += name_size;
    held += fmt::format("{}{}", held.empty() ? "" : ", ", triple);
    if (!triple.starts_with("hip") || !serves(target_id(triple), target.name)) continue;
    if (offset > binary.size() || size > binary.size() - offset) {
      return damaged(
          fmt::format("the bundle's part {} lies outside its {} bytes", triple, binary.size()));
    }
    return binary.subspan(offset, size);
  }
  return damaged(fmt::format("the bundle has no part for {}; it has {}", target.name, held));
}

Result<std::vector<LaunchLimits>> read_code_object(std::span<const KernelEntry> entries,
                                                   const Target& target,
                                                   std::span<const std::byte> binary) {
  auto object = unwrap_bundle(target, binary);
  if (!object) return object.error();
  auto image = ElfImage::read(*object);
  if (!image) return damaged(image.error().message);
  if (image->machine != kMachineAmdGpu) {
    return damaged(
        fmt::format("ELF machine {} is not the AMD GPU's {}", image->machine, kMachineAmdGpu));
  }
  auto metadata = read_metadata(*image);
  if (!metadata) return metadata.error();
  // Version 3 objects do not name their target here.
  const std::string triple = text(*metadata, "amdhsa.target");
  if (!triple.empty() && !serves(target_id(triple), target.name)) {
    return damaged(fmt::format("it was built for {}, not for {}", target_id(triple), target.name));
  }
  const Json kernels = metadata->value("amdhsa.kernels", Json::array());
  std::string held;
  std::vector<LaunchLimits> rows;
  for (const KernelEntry& entry : entries) {
    const auto kernel = std::find_if(kernels.begin(), kernels.end(), [&](const Json& each) {
      return each.is_object() && text(each, ".name") == entry.function;
    });
    if (!kernels.is_array() || kernel == kernels.end()) {
      for (const Json& each : kernels) {
        if (!each.is_object()) continue;
        held += fmt::format("{}{}", held.empty() ? "" : ", ", text(each, ".name"));
      }
      return damaged(fmt::format("there is no kernel \"{}\"; it has {}", entry.function,
                                 held.empty() ? "none" : held));
    }
    auto limits = limits_of(*image, *kernel, entry.function, target);
    if (!limits) return limits.error();
    rows.push_back(std::move(*limits));
  }
  return rows;
}

}  // namespace broach::specializer
