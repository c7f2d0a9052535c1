#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <vector>

#include "tools/rtc/compiler.hpp"
#include "tools/rtc/files_read.hpp"
#include "tools/rtc/rtc_program.hpp"
#include "tools/rtc/shared_library.hpp"

namespace broach::rtc {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kArchOption = "--offload-arch=";

// 64 bits of a build id tell builds apart that anyone will ever meet.
constexpr std::size_t kKeyDigits = 16;

class Hiprtc final : public Compiler {
 public:
  const Opened& opened() const override { return opened_; }

  Result<void> open(const OpenRequest& request) {
    scratch_ = request.scratch;
    auto library = SharedLibrary::open(request.path);
    if (!library) return std::move(library).error();
    auto loaded = library->load({{api_.error_string, "hiprtcGetErrorString"},
                                 {api_.version, "hiprtcVersion"},
                                 {api_.create, "hiprtcCreateProgram"},
                                 {api_.destroy, "hiprtcDestroyProgram"},
                                 {api_.compile, "hiprtcCompileProgram"},
                                 {api_.log_size, "hiprtcGetProgramLogSize"},
                                 {api_.log, "hiprtcGetProgramLog"},
                                 {api_.binary_size, "hiprtcGetCodeSize"},
                                 {api_.binary, "hiprtcGetCode"},
                                 {api_.add_name, "hiprtcAddNameExpression"},
                                 {api_.lowered_name, "hiprtcGetLoweredName"}});
    if (!loaded) return loaded;
    return identify();
  }

  Result<Compiled> compile(const CompileRequest& request) override {
    const fs::path listed = fs::path(scratch_) / "read";
    auto options = with_arch(request.options, kArchOption, request.arch);
    // Past comgr's driver, of which some releases drop -MF. None has a part in the code.
    for (const std::string& word :
         {std::string("-dependency-file"), listed.string(), std::string("-sys-header-deps"),
          std::string("-MT"), std::string("code")}) {
      options.insert(options.end(), {"-Xclang", word});
    }
    auto compiled = compile_program(api_, request.sources, options, request.name_expressions);
    const std::string& main = request.sources.front().name;
    if (compiled) {
      // What comgr wrote itself lies in the private directory.
      auto own = check_files_read(
          listed, [this](const std::string& file) { return file.starts_with(scratch_ + "/"); });
      if (!own) return own.error();
      compiled->log = in_virtual_names(compiled->log, main);
      return compiled;
    }
    const Error& error = compiled.error();
    return Error{error.code, in_virtual_names(error.message, main),
                 in_virtual_names(error.detail, main)};
  }

 private:
  // comgr writes the sources to files, and the main one under a name of its own.
  std::string in_virtual_names(std::string_view log, const std::string& main) const {
    constexpr std::array<std::string_view, 2> kFolders = {"/input/", "/include/"};
    std::string out;
    while (!log.empty()) {
      const std::size_t at = log.find(scratch_);
      out += log.substr(0, at);
      if (at == std::string_view::npos) break;
      log.remove_prefix(at);
      const std::size_t end = std::min(log.find_first_of(": \n'\""), log.size());
      std::string_view path = log.substr(0, end);
      for (const std::string_view folder : kFolders) {
        const std::size_t start = path.find(folder);
        if (start != std::string_view::npos) path.remove_prefix(start + folder.size());
      }
      out += path == "CompileSource" ? std::string_view(main) : path;
      log.remove_prefix(end);
    }
    return out;
  }

  // The version words say little: the code comes from the LLVM inside or beside comgr. The build
  // ids are in the identity, so that a distribution's rebuild of any of them is another compiler.
  Result<void> identify() {
    int major = 0;
    int minor = 0;
    api_.version(&major, &minor);
    const std::string version = std::to_string(major) + "." + std::to_string(minor);
    // comgr is opened at the first compile, so there has to be one; an architecture that every
    // release knows keeps it from aborting.
    auto compiled = compile_program(api_, {{"identity.hip", ""}}, {"--offload-arch=gfx906"});
    opened_.toolkit = {static_cast<std::uint32_t>(major), static_cast<std::uint32_t>(minor)};
    opened_.images = images_named(
        {"libamdhip64.", "libhiprtc.", "libamd_comgr.", "libhiprtc-builtins.", "libLLVM"});
    const auto comgr_image = std::find_if(
        opened_.images.begin(), opened_.images.end(),
        [](const Image& image) { return image.path.find("/libamd_comgr.") != std::string::npos; });
    if (comgr_image == opened_.images.end()) {
      return Error{
          ErrorCode::kCompilerMissing,
          "hiprtc opened no comgr" + (compiled ? std::string() : ": " + compiled.error().message),
          compiled ? "" : compiled.error().detail};
    }
    const std::string comgr = ask_comgr(comgr_image->path);
    opened_.key_text = "hiprtc " + version + " comgr " + comgr;
    for (const Image& image : opened_.images) {
      opened_.key_text.append(" ").append(image.build_id, 0, kKeyDigits);
    }
    opened_.words =
        "hiprtc " + release_of(opened_.images.front().path, version) + " (comgr " + comgr + ")";
    return {};
  }

  // hiprtcVersion counts on its own (9.0 in releases 5.2 and 6.4); people know the release, which
  // the file's full name ends in.
  static std::string release_of(const std::string& path, const std::string& otherwise) {
    std::error_code error;
    const std::string name = fs::canonical(path, error).filename().string();
    const std::size_t at = name.find(".so.");
    if (error || at == std::string::npos) return otherwise;
    const std::string release = name.substr(at + 4);
    return release.find('.') == std::string::npos ? otherwise : release;
  }

  // comgr's version, and what it can compile for into the targets.
  std::string ask_comgr(const std::string& path) {
    void (*get_version)(std::size_t*, std::size_t*) = nullptr;
    int (*isa_count)(std::size_t*) = nullptr;
    int (*isa_name)(std::size_t, const char**) = nullptr;
    auto library = SharedLibrary::open(path);
    if (!library || !library->load({{get_version, "amd_comgr_get_version"},
                                    {isa_count, "amd_comgr_get_isa_count"},
                                    {isa_name, "amd_comgr_get_isa_name"}})) {
      return "unknown";
    }
    std::size_t count = 0;
    if (isa_count(&count) != 0) count = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const char* name = nullptr;
      if (isa_name(i, &name) != 0 || name == nullptr) continue;
      // "amdgcn-amd-amdhsa--gfx9-4-generic": the chip follows the empty environment.
      const std::string_view triple = name;
      const std::size_t dashes = triple.rfind("--");
      if (dashes != std::string_view::npos) opened_.targets.emplace_back(triple.substr(dashes + 2));
    }
    std::size_t major = 0;
    std::size_t minor = 0;
    get_version(&major, &minor);
    return std::to_string(major) + "." + std::to_string(minor);
  }

  ProgramApi api_;
  std::string scratch_;
  Opened opened_;
};

}  // namespace

Result<std::unique_ptr<Compiler>> open_hiprtc(const OpenRequest& request) {
  auto compiler = std::make_unique<Hiprtc>();
  if (auto opened = compiler->open(request); !opened) return opened.error();
  return std::unique_ptr<Compiler>(std::move(compiler));
}

}  // namespace broach::rtc
