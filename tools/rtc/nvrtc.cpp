#include <string_view>
#include <vector>

#include "tools/rtc/compiler.hpp"
#include "tools/rtc/guard.hpp"
#include "tools/rtc/log.hpp"
#include "tools/rtc/rtc_program.hpp"
#include "tools/rtc/shared_library.hpp"

namespace broach::rtc {
namespace {

constexpr std::string_view kArchOption = "--gpu-architecture=";

// The word that starts with `start`, such as a build number, out of a PTX header's comments.
std::string word_starting(std::string_view text, std::string_view start) {
  const std::size_t at = text.find(start);
  if (at == std::string_view::npos) return "";
  const std::string_view rest = text.substr(at);
  return std::string(rest.substr(0, rest.find_first_of(" ,\r\n")));
}

// What the front end says of a file that it was kept from opening.
bool is_stranger(const Error& error) {
  return error.code == ErrorCode::kIo && error.detail.find("open source file") != std::string::npos;
}

class Nvrtc final : public Compiler {
 public:
  const Opened& opened() const override { return opened_; }

  Result<void> open(const std::string& path) {
    auto library = SharedLibrary::open(path);
    if (!library) return std::move(library).error();
    int (*arch_count)(int*) = nullptr;
    int (*archs)(int*) = nullptr;
    auto loaded = library->load({{api_.error_string, "nvrtcGetErrorString"},
                                 {api_.version, "nvrtcVersion"},
                                 {api_.create, "nvrtcCreateProgram"},
                                 {api_.destroy, "nvrtcDestroyProgram"},
                                 {api_.compile, "nvrtcCompileProgram"},
                                 {api_.log_size, "nvrtcGetProgramLogSize"},
                                 {api_.log, "nvrtcGetProgramLog"},
                                 {api_.binary_size, "nvrtcGetCUBINSize"},
                                 {api_.binary, "nvrtcGetCUBIN"},
                                 {api_.add_name, "nvrtcAddNameExpression"},
                                 {api_.lowered_name, "nvrtcGetLoweredName"},
                                 {ptx_size_, "nvrtcGetPTXSize"},
                                 {ptx_, "nvrtcGetPTX"},
                                 {arch_count, "nvrtcGetNumSupportedArchs"},
                                 {archs, "nvrtcGetSupportedArchs"}});
    if (!loaded) return loaded;
    int count = 0;
    if (arch_count(&count) == 0 && count > 0) {
      std::vector<int> numbers(static_cast<std::size_t>(count));
      if (archs(numbers.data()) != 0) numbers.clear();
      for (const int number : numbers) opened_.targets.push_back("sm_" + std::to_string(number));
    }
    return identify();
  }

  Result<Compiled> compile(const CompileRequest& request) override {
    auto compiled = [&] {
      const NoNewFiles none;
      return compile_program(api_, request.sources,
                             with_arch(request.options, kArchOption, request.arch),
                             request.name_expressions);
    }();
    if (!compiled && is_stranger(compiled.error())) {
      Error error = std::move(compiled).error();
      error.code = ErrorCode::kCompileFailed;
      error.message += "; sources include only what the plan has";
      return error;
    }
    if (compiled || compiled.error().detail.find("gpu-architecture") == std::string::npos) {
      return compiled;
    }
    Error error = std::move(compiled).error();
    error.message += "; this one compiles for";
    for (const std::string& target : opened_.targets) error.message += " " + target;
    return error;
  }

 private:
  // The interface states only major and minor; the build is in the header of any PTX it writes.
  Result<void> identify() {
    int major = 0;
    int minor = 0;
    api_.version(&major, &minor);
    ProgramApi to_ptx = api_;
    to_ptx.binary_size = ptx_size_;
    to_ptx.binary = ptx_;
    auto compiled = compile_program(to_ptx, {{"identity.cu", ""}}, {});
    if (!compiled) {
      Error error = std::move(compiled).error();
      error.message = "an empty program does not compile: " + error.message;
      if (error.code != ErrorCode::kOutOfMemory) error.code = ErrorCode::kCompilerMissing;
      return error;
    }
    std::string version =
        word_starting(compiled->binary, std::string("V").append(std::to_string(major)).append("."));
    const std::string build = word_starting(compiled->binary, "CL-");
    if (version.empty() || build.empty()) {
      return Error{ErrorCode::kCompilerMissing,
                   "NVRTC " + std::to_string(major) + "." + std::to_string(minor) +
                       " does not state its build in the PTX it writes",
                   compiled->binary.substr(0, 400)};
    }
    version.erase(0, 1);
    opened_.key_text = "nvrtc " + version + " " + build;
    opened_.words = "NVRTC " + version + " (build " + build.substr(3) + ")";
    opened_.images = images_named({"libnvrtc.", "libnvrtc-builtins."});
    opened_.toolkit = {static_cast<std::uint32_t>(major), static_cast<std::uint32_t>(minor)};
    return {};
  }

  ProgramApi api_;
  int (*ptx_size_)(ProgramApi::Program, std::size_t*) = nullptr;
  int (*ptx_)(ProgramApi::Program, char*) = nullptr;
  Opened opened_;
};

}  // namespace

Result<std::unique_ptr<Compiler>> open_nvrtc(const OpenRequest& request) {
  auto compiler = std::make_unique<Nvrtc>();
  if (auto opened = compiler->open(request.path); !opened) return opened.error();
  return std::unique_ptr<Compiler>(std::move(compiler));
}

}  // namespace broach::rtc
