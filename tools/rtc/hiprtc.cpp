#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include "tools/rtc/compiler.hpp"
#include "tools/rtc/rtc_program.hpp"
#include "tools/rtc/shared_library.hpp"

namespace broach::rtc {
namespace {

constexpr std::string_view kArchOption = "--offload-arch=";

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
                                 {api_.binary, "hiprtcGetCode"}});
    if (!loaded) return loaded;
    return identify(*library);
  }

  Result<Compiled> compile(const CompileRequest& request) override {
    auto compiled = compile_program(api_, request.sources,
                                    with_arch(request.options, kArchOption, request.arch));
    const std::string& main = request.sources.front().name;
    if (compiled) {
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

  // The version words say little: the code comes from the LLVM inside comgr. The libraries' build
  // ids are in the identity, so that a distribution's rebuild is another compiler.
  Result<void> identify(const SharedLibrary& library) {
    const std::string version = version_of(library);
    // comgr is opened at the first compile, so there has to be one; an architecture that every
    // release knows keeps it from aborting.
    auto compiled = compile_program(api_, {{"identity.hip", ""}}, {"--offload-arch=gfx906"});
    opened_.images = images_named({"libamdhip64.", "libhiprtc.", "libamd_comgr."});
    if (opened_.images.empty() ||
        opened_.images.back().path.find("libamd_comgr.") == std::string::npos) {
      return Error{
          ErrorCode::kCompilerMissing,
          "hiprtc opened no comgr" + (compiled ? std::string() : ": " + compiled.error().message),
          compiled ? "" : compiled.error().detail};
    }
    const std::string comgr = comgr_version(opened_.images.back().path);
    opened_.key_text = "hiprtc " + version + " comgr " + comgr;
    for (const Image& image : opened_.images) opened_.key_text += " " + image.build_id;
    opened_.words = "hiprtc " + version + " (comgr " + comgr + ")";
    for (const Image& image : images_named({"libhiprtc-builtins.", "libLLVM"})) {
      opened_.images.push_back(image);
    }
    return {};
  }

  // The release where the library tells it: hiprtcVersion counts otherwise (9.0 in release 5.2).
  std::string version_of(const SharedLibrary& library) const {
    int (*runtime_version)(int*) = nullptr;
    int packed = 0;
    if (library.load({{runtime_version, "hipRuntimeGetVersion"}}) &&
        runtime_version(&packed) == 0 && packed > 0) {
      return std::to_string(packed / 10'000'000) + "." + std::to_string(packed / 100'000 % 100) +
             "." + std::to_string(packed % 100'000);
    }
    int major = 0;
    int minor = 0;
    api_.version(&major, &minor);
    return std::to_string(major) + "." + std::to_string(minor);
  }

  static std::string comgr_version(const std::string& path) {
    void (*get_version)(std::size_t*, std::size_t*) = nullptr;
    auto library = SharedLibrary::open(path);
    if (!library || !library->load({{get_version, "amd_comgr_get_version"}})) return "unknown";
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
