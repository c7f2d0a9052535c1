// Writes what the fuzzers start from: DIRECTORY/<target>/<seed>, the same bytes every time.
//   fuzz_seeds DIRECTORY
#include <elf.h>

#include <algorithm>
#include <array>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "cache/bundle_format.hpp"
#include "cache/failure.hpp"
#include "cache/frame.hpp"
#include "cache/holder_note.hpp"
#include "cache/key_file.hpp"
#include "cache/memo_record.hpp"
#include "cache/object.hpp"
#include "cache/remote/envelope.hpp"
#include "cache/remote/lease_note.hpp"
#include "cache/signature.hpp"
#include "kernel_src/broach/launch_geometry.h"
#include "kernel_src/host/abi.h"
#include "specializer/compile/identity_record.hpp"
#include "specializer/compile/protocol.hpp"
#include "specializer/target.hpp"
#include "specializer/window_rows/shape.hpp"
#include "tests/fuzz/elf_writer.hpp"

namespace broach::fuzz {
namespace {

namespace fs = std::filesystem;

/// Writes the seeds of one target.
class Folder {
 public:
  Folder(const fs::path& top, std::string_view target) : path_(top / target) {
    fs::create_directories(path_);
  }
  void add(std::string_view name, std::string_view bytes) const {
    std::ofstream file(path_ / name, std::ios::binary | std::ios::trunc);
    file << bytes;
    if (!file.flush()) throw std::runtime_error("cannot write " + (path_ / name).string());
  }

 private:
  fs::path path_;
};

std::string words(std::initializer_list<std::uint32_t> values) {
  std::string out;
  for (const std::uint32_t value : values) out += raw(value);
  return out;
}

// One record of a .nv.info section in its sized form: 4, attribute, length, value.
std::string info(std::uint8_t attribute, const std::string& value) {
  return std::string{4, static_cast<char>(attribute)} +
         raw(static_cast<std::uint16_t>(value.size())) + value;
}

std::string geometry() {
  return raw(BroachLaunchGeometry{
      BROACH_GEOMETRY_MAGIC, BROACH_GEOMETRY_VERSION, {32, 2, 1}, 65536, {2, 1, 1}, {}});
}

std::string cubin(std::uint8_t abi) {
  const std::uint32_t chip = abi >= 8 ? 90U << 8 : 90U;
  ElfWriter elf(190, chip, 0x33, abi);
  std::string attributes;
  for (const std::uint32_t symbol : {1U, 2U}) {
    attributes += info(0x2f, words({symbol, 40}));
    attributes += info(0x11, words({symbol, 16}));
    attributes += info(0x12, words({symbol, 24}));
  }
  elf.section(".nv.info", 0x70000000, 0, attributes);
  // One instruction that stores to local memory, 16 bytes wide.
  const std::string code = words({0x387, 0, 6U << 9, 0});
  const std::uint32_t spill = elf.section(".text.spill", SHT_PROGBITS, SHF_ALLOC, code);
  const std::uint32_t bounds = elf.section(".text.bounds96", SHT_PROGBITS, SHF_ALLOC, code);
  // Two parameters, in either form, and the space that they fill.
  elf.section(".nv.info.spill", 0x70000000, 0,
              info(0x55, words({1, 0})) + info(0x17, words({0, 8U << 16 | 1, 4U << 18})) +
                  info(0x45, words({0, 0, 8})) + std::string("\x03\x19\x0c\x00", 4));
  elf.section(".nv.info.bounds96", 0x70000000, 0,
              info(0x05, words({96, 1, 1})) + std::string("\x02\x4c\x01\x00", 4));
  elf.section(".nv.shared.spill", SHT_NOBITS, SHF_ALLOC, "", 2048);
  elf.section(".nv.constant3", SHT_PROGBITS, SHF_ALLOC, words({1, 2, 3, 4}));
  const std::uint32_t global =
      elf.section(".nv.global.init", SHT_PROGBITS, SHF_ALLOC | SHF_WRITE, geometry());
  elf.symbol("spill", STT_FUNC, spill, 0, code.size());
  elf.symbol("bounds96", STT_FUNC, bounds, 0, code.size());
  elf.symbol(BROACH_GEOMETRY_PREFIX "bounds96", STT_OBJECT, global, 0, geometry().size());
  return elf.finish(SHT_SYMTAB);
}

std::string code_object() {
  nlohmann::json kernels = nlohmann::json::array();
  for (const char* name : {"spill", "bounds96"}) {
    kernels.push_back({{".name", name},
                       {".vgpr_count", 32U},
                       {".agpr_count", 4U},
                       {".sgpr_count", 16U},
                       {".vgpr_spill_count", 2U},
                       {".sgpr_spill_count", 0U},
                       {".group_segment_fixed_size", 512U},
                       {".private_segment_fixed_size", 64U},
                       {".wavefront_size", 64U},
                       {".max_flat_workgroup_size", 256U},
                       {".reqd_workgroup_size", {32U, 2U, 1U}},
                       {".args",
                        {{{".size", 8U}, {".value_kind", "global_buffer"}},
                         {{".size", 4U}, {".value_kind", "hidden_block_count_x"}}}},
                       {".uses_dynamic_stack", false}});
  }
  const nlohmann::json metadata = {{"amdhsa.target", "amdgcn-amd-amdhsa--gfx90a"},
                                   {"amdhsa.kernels", kernels},
                                   {"amdhsa.version", {1U, 2U}}};
  const auto packed = nlohmann::json::to_msgpack(metadata);
  std::string note = words({7, static_cast<std::uint32_t>(packed.size()), 32});
  note += std::string("AMDGPU\0\0", 8);
  note.append(packed.begin(), packed.end());
  note.resize((note.size() + 3) / 4 * 4);
  ElfWriter elf(224, 0x3f, 64, 2);
  // The first section lies right behind the header, where the symbol says it is.
  const std::uint32_t data = elf.section(".rodata", SHT_PROGBITS, SHF_ALLOC, geometry());
  elf.section(".note", SHT_NOTE, SHF_ALLOC, note);
  elf.symbol(BROACH_GEOMETRY_PREFIX "spill", STT_OBJECT, data, sizeof(Elf64_Ehdr),
             geometry().size());
  return elf.finish(SHT_DYNSYM);
}

std::string offload_bundle(std::string_view object) {
  const std::string_view triple = "hipv4-amdgcn-amd-amdhsa--gfx90a";
  std::string out = "__CLANG_OFFLOAD_BUNDLE__";
  const std::uint64_t offset = out.size() + 4 * sizeof offset + triple.size();
  out += raw(std::uint64_t{1}) + raw(offset) + raw(std::uint64_t{object.size()}) +
         raw(std::uint64_t{triple.size()});
  return out.append(triple).append(object);
}

std::string host_object() {
  BroachHostRecord record{};
  record.magic = BROACH_HOST_MAGIC;
  record.abi_version = BROACH_HOST_ABI_VERSION;
  record.block_threads = 192;
  record.static_shared_bytes = 1024;
  ElfWriter elf(EM_X86_64, 0, 0, 0);
  // The first section lies right behind the header, where the symbol says it is.
  const std::uint32_t data =
      elf.section(".rodata", SHT_PROGBITS, SHF_ALLOC, raw(record) + geometry());
  elf.symbol(BROACH_HOST_RECORD_PREFIX "sum", STT_OBJECT, data, sizeof(Elf64_Ehdr), sizeof record);
  elf.symbol(BROACH_GEOMETRY_PREFIX "sum", STT_OBJECT, data, sizeof(Elf64_Ehdr) + sizeof record,
             geometry().size());
  return elf.finish(SHT_DYNSYM);
}

std::string elf_with_build_id() {
  const std::string note = words({4, 8, NT_GNU_BUILD_ID}) + std::string("GNU\0", 4) + "12345678";
  Elf64_Ehdr header{};
  std::copy_n(ELFMAG, SELFMAG, header.e_ident);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_phoff = sizeof header;
  header.e_phentsize = sizeof(Elf64_Phdr);
  header.e_phnum = 1;
  Elf64_Phdr segment{};
  segment.p_type = PT_NOTE;
  segment.p_offset = sizeof header + sizeof segment;
  segment.p_filesz = note.size();
  return raw(header) + raw(segment) + note;
}

cache::Object object(std::size_t payload_bytes) {
  cache::Object made;
  made.key = cache::KeyBuilder().field("family", "window_rows").field("target", "sm_90a").finish();
  made.description = {"window_rows", "sm_90a", "{}", "0123", "NVRTC 13.0", "cubin"};
  made.provenance = {1'700'000'000'000, 120, "0.1.0", "NVRTC 13.0.88", "CUDA 13.0", "log\n"};
  LaunchLimits limits;
  limits.function = "decode_part";
  limits.registers = 64;
  limits.source = "cubin";
  limits.block_x = 128;
  limits.parameter_bytes = {8, 128};
  made.limits = {limits, limits};
  made.payload.resize(payload_bytes);
  return made;
}

std::string encoded(const cache::Object& made) {
  const auto bytes = cache::encode(made);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

cache::SecretKey made_key() {
  return cache::SecretKey::from_seed(std::array<std::uint8_t, 32>{1}, "made");
}

void add_bundles(const Folder& bundles, const Folder& frames) {
  const std::vector<std::byte> made = cache::encode(object(64));
  const auto frame = cache::FrameCompressor().compress(made);
  if (!frame) throw std::runtime_error(frame.error().message);
  // The claimed size, then the frame.
  frames.add("object", raw(static_cast<std::uint16_t>(made.size())).append(text_of(*frame)));
  std::vector<cache::BundleEntry> entries(1);
  entries[0].key = object(64).key.key;
  entries[0].frame_bytes = frame->size();
  entries[0].object_bytes = made.size();
  entries[0].frame_digest = cache::strong_digest_of(*frame);
  const cache::SecretKey signer = made_key();
  bundles.add("empty", cache::encode_front({}, nullptr));
  bundles.add("unsigned", cache::encode_front(entries, nullptr));
  bundles.add("signed", cache::encode_front(entries, &signer));
}

void add_keys(const Folder& folder) {
  const cache::SecretKey key = made_key();
  folder.add("public", cache::to_text(key.public_key()));
  folder.add("secret", cache::to_text(key));
  folder.add("signature", text_of(cache::encode(key.sign(cache::Signed::kObject, {}))));
}

// What a fleet's machines read of each other: a signed value, a lease, a reply, a URL.
void add_fleet(const fs::path& top) {
  const auto added = [&](std::string_view target, std::string_view name, std::string_view bytes) {
    Folder(top, target).add(name, bytes);
  };
  added("envelope", "signed", cache::remote::seal(object(64), made_key()));
  added("lease_note", "note",
        cache::remote::to_text({"0123abcd", "machine", 4711, 1'700'000'000'000, "compile"}));
  added("holder_note", "note", cache::to_text({4711, 4026531836, 1'700'000'000'000, "compile"}));
  // The first byte is the length of a piece.
  added("redis_reply", "status", "\x01+OK\r\n");
  added("redis_reply", "error", "\x02-NOAUTH Authentication required.\r\n");
  added("redis_reply", "integer", "\x03:1\r\n");
  added("redis_reply", "value", "\x04$5\r\nvalue\r\n");
  added("redis_reply", "none", "\x05$-1\r\n");
  added("remote_address", "http", "https://ci:p%40ss@cache.example:8443/kernels/{key}?sig=1");
  added("remote_address", "sha256", "http://[::1]/ac/{sha256}");
  added("remote_address", "redis", "rediss://user:secret@10.0.0.5:6380/3");
}

// What is said of compilers and drivers.
void add_toolchains(const fs::path& top) {
  const auto record = specializer::to_text(
      {"nvrtc 13.0.88 CL-1", "NVRTC 13.0", {{"/usr/lib/libnvrtc-builtins.so", "0123"}}, {13, 0}});
  Folder(top, "identity").add("record", record.value());
  Folder(top, "cuda_version").add("version", "CUDA 12.4");
  Folder(top, "compile_log")
      .add("log",
           "In file included from main:1:\n 1 | out of memory\nmain:7: error: expected ';'\n"
           "cc1plus: out of memory allocating 65536 bytes\n");
}

void add_worker_messages(const Folder& folder) {
  using namespace specializer::rtc;
  const Message messages[] = {
      OpenRequest{Engine::kHiprtc, "/lib/x.so", 1ULL << 40, "/tmp/a"},
      CompileRequest{
          "sm_90a", {{"main.cu", "int x;"}, {"x/y.cuh", ""}}, {"-O3", ""}, {"f<4>", "g"}},
      Opened{"key", "words", {{"/a", "12"}, {"/b", ""}}, {"sm_80", "sm_90"}, {13, 1}},
      Compiled{"binary", "log\n", 1234, {"_Z1fILi4EEvv", "g"}},
      Failed{ErrorCode::kCompileFailed, "no", "a long log"}};
  for (std::size_t i = 0; i < std::size(messages); ++i) {
    const std::string frame = *encode(messages[i]);
    folder.add("body" + std::to_string(i), std::string_view(frame).substr(kHeaderBytes));
    folder.add("header" + std::to_string(i), std::string_view(frame).substr(0, kHeaderBytes));
  }
}

constexpr std::string_view kManifest = R"json({"manifest": 1, "name": "made", "entries": [
{"model": "A", "layers": "full (all)", "source": "s", "verified": true, "q_heads": 32, "kv_heads": 8,
"shape": {"head_dim": 64, "gqa_ratio": 4, "window": 0, "kv_layout": "linear", "dtype": "bf16"}}],
"not_served": [{"model": "B", "layers": "all", "source": "s", "reason": "r"}]
})json";

constexpr std::string_view kFamily = R"json({"family": 1, "name": "acme.scale", "parameters": [
{"name": "dim", "type": "int", "range": [8, 64], "multiple_of": 8, "default": 8, "constant": "kDim"},
{"name": "warps", "type": "int", "values": [1, 4], "default": 4, "macro": "WARPS"},
{"name": "dtype", "type": "enum", "values": {"bf16": "__nv_bfloat16", "f16": "__half"}},
{"name": "residual", "type": "bool", "default": true, "constant": "kResidual"}],
"sources": ["scale.cuh", "sub/vec.cuh"], "main": "scale.cuh", "packs": ["cuda", {"name": "o", "root": "o"}],
"functions": ["acme_scale", {"name": "twice", "expression": "twice<{dim}, {dtype}>", "block": [32, 4],
"dynamic_shared": 64, "cluster": 2}], "targets": ["sm_80+", "gfx90a", "host"],
"options": {"nvidia": {"fmad": true, "max_registers": 64}, "host": {"std": "c++17"}},
"refuse": ["spills", "local_memory"], "notes": "n"})json";

constexpr char kSources[] =
    "#include \"a\"\n#include \"b\"\n// c\n/* d */ int x = R\"q(\n#include \"c\"\n)q\";\0"
    "#pragma once\n#include \"b\"\n#if 0\n#include \"c\"\n#endif\n\0#include <d>\nint b;\n\0int c;";

constexpr std::string_view kLog =
    "ptxas info    : 0 bytes gmem\nptxas info    : Function properties for spill\n"
    "    16 bytes stack frame, 8 bytes spill stores, 12 bytes spill loads\n"
    "ptxas info    : Used 40 registers\n";

void write_seeds(const fs::path& top) {
  Folder(top, "cubin").add("abi7", cubin(7));
  Folder(top, "cubin").add("abi8", cubin(8));
  Folder(top, "code_object").add("object", code_object());
  Folder(top, "code_object").add("bundle", offload_bundle(code_object()));
  Folder(top, "host_object").add("object", host_object());
  Folder(top, "elf_build_id").add("elf", elf_with_build_id());
  Folder(top, "object").add("small", encoded(object(64)));
  Folder(top, "object").add("empty", encoded(object(0)));
  cache::Failure failure;
  failure.target = "sm_90a";
  failure.compiler = "NVRTC 13.0";
  failure.error = {ErrorCode::kCompileFailed, "does not compile", "the log"};
  failure.created_unix_ms = 1'700'000'000'000;
  failure.expires_unix_ms = 1'700'003'600'000;
  add_bundles(Folder(top, "bundle"), Folder(top, "frame"));
  add_keys(Folder(top, "key_file"));
  Folder(top, "failure").add("failure", cache::to_text(failure));
  Folder(top, "memo").add("memo", cache::memo_record("name", "value"));
  Folder(top, "memo").add("other", cache::memo_record("another", ""));
  add_fleet(top);
  add_toolchains(top);
  add_worker_messages(Folder(top, "worker_protocol"));
  Folder(top, "json").add("values", R"({"a": [1, -2.5e3, true, null, "\u00e9"], "b": {"c": []}})");
  Folder(top, "manifest").add("manifest", kManifest);
  Folder(top, "own_family").add("family", kFamily);
  Folder(top, "include_scan")
      .add("source",
           "#inc\\\nlude \"a.h\" // b\n/* c\n*/ # include /**/ <d/e.h>\n#define ROOT d/SYS\n"
           "#define SYS e\n#define HEADER <ROOT/f.h>\n#include HEADER\nR\"(\n#include <g>\n)\"\n");
  Folder(top, "flatten").add("sources", {kSources, sizeof kSources - 1});
  Folder(top, "planted").add("harmless", "F");
  Folder(top, "ptxas_log").add("log", kLog);
  WindowRowsShape shape;
  shape.head_dim = 256;
  shape.gqa_ratio = 2;
  shape.window = 1024;
  shape.kv_layout = {KvLayoutKind::kRing, 1536};
  Folder(top, "shape").add("json", specializer::to_json(shape));
  Folder(top, "shape").add("words", specializer::to_text(shape));
  for (const std::string_view name : specializer::known_targets()) {
    Folder(top, "target_name").add(name, name);
  }
  Folder(top, "target_name").add("features", "gfx90a:sramecc+:xnack-");
}

}  // namespace
}  // namespace broach::fuzz

int main(int argc, char* argv[]) {
  if (argc != 2) {
    std::cerr << "usage: fuzz_seeds DIRECTORY\n";
    return 2;
  }
  try {
    broach::fuzz::write_seeds(argv[1]);
  } catch (const std::exception& fault) {
    std::cerr << "fuzz_seeds: " << fault.what() << '\n';
    return 1;
  }
  return 0;
}
