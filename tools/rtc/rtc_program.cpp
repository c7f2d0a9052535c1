#include "tools/rtc/rtc_program.hpp"

#include <algorithm>
#include <chrono>

#include "specializer/compile/elf_build_id.hpp"
#include "specializer/compile/trouble.hpp"
#include "tools/rtc/log.hpp"

namespace broach::rtc {
namespace {

// One value in both interfaces.
constexpr int kOutOfMemory = 1;

// Destroys a program when it goes out of scope.
class OwnedProgram {
 public:
  explicit OwnedProgram(const ProgramApi& api) : api_(api) {}
  ~OwnedProgram() {
    if (program != nullptr) api_.destroy(&program);
  }
  OwnedProgram(const OwnedProgram&) = delete;
  OwnedProgram& operator=(const OwnedProgram&) = delete;

  ProgramApi::Program program = nullptr;

 private:
  const ProgramApi& api_;
};

std::vector<const char*> pointers(const std::vector<std::string>& words) {
  std::vector<const char*> out;
  for (const std::string& word : words) out.push_back(word.c_str());
  return out;
}

template <class Size, class Get>
std::string buffer_of(ProgramApi::Program program, Size size_of, Get get) {
  std::size_t size = 0;
  if (size_of(program, &size) != 0) return "";
  std::string bytes(size, '\0');
  if (size > 0 && get(program, bytes.data()) != 0) return "";
  return bytes;
}

Error failure(const ProgramApi& api, int status, std::string log) {
  using specializer::rtc::Trouble;
  const Trouble trouble = specializer::rtc::trouble_in(log);
  if (status == kOutOfMemory || trouble == Trouble::kMemory) {
    return Error{ErrorCode::kOutOfMemory,
                 log.empty() ? api.error_string(status) : first_complaint(log),
                 bounded_log(std::move(log))};
  }
  if (trouble == Trouble::kMachine) {
    return Error{ErrorCode::kIo, first_complaint(log), bounded_log(std::move(log))};
  }
  // A compiler that refuses the source says why.
  if (log.empty()) {
    return Error{ErrorCode::kIo,
                 std::string(api.error_string(status)) +
                     " without a word about the source, as on a machine in trouble (a full "
                     "temporary directory)",
                 ""};
  }
  return Error{ErrorCode::kCompileFailed, first_complaint(log), bounded_log(std::move(log))};
}

Error unnamed(const ProgramApi& api, int status, const std::string& name) {
  return Error{ErrorCode::kCompileFailed,
               "the compiler knows no kernel \"" + name + "\": " + api.error_string(status), ""};
}

}  // namespace

Result<Compiled> compile_program(const ProgramApi& api, const std::vector<Source>& sources,
                                 const std::vector<std::string>& options,
                                 const std::vector<std::string>& names_of_functions) {
  const auto start = std::chrono::steady_clock::now();
  std::vector<const char*> names;
  std::vector<const char*> bytes;
  for (std::size_t i = 1; i < sources.size(); ++i) {
    names.push_back(sources[i].name.c_str());
    bytes.push_back(sources[i].bytes.c_str());
  }
  OwnedProgram owned(api);
  int status =
      api.create(&owned.program, sources.front().bytes.c_str(), sources.front().name.c_str(),
                 static_cast<int>(names.size()), bytes.data(), names.data());
  if (status != 0) return failure(api, status, "");
  for (const std::string& name : names_of_functions) {
    status = api.add_name(owned.program, name.c_str());
    if (status != 0) return unnamed(api, status, name);
  }
  const std::vector<const char*> words = pointers(options);
  status = api.compile(owned.program, static_cast<int>(words.size()), words.data());
  std::string log = without_terminator(buffer_of(owned.program, api.log_size, api.log));
  if (status != 0) return failure(api, status, std::move(log));
  Compiled compiled;
  compiled.binary = buffer_of(owned.program, api.binary_size, api.binary);
  if (compiled.binary.empty()) {
    return Error{ErrorCode::kCompileFailed,
                 "the compiler gave no binary; the architecture must be a real one", log};
  }
  for (const std::string& name : names_of_functions) {
    const char* lowered = nullptr;
    status = api.lowered_name(owned.program, name.c_str(), &lowered);
    if (status != 0 || lowered == nullptr) return unnamed(api, status, name);
    compiled.lowered_names.emplace_back(lowered);
  }
  compiled.log = bounded_log(std::move(log));
  compiled.compile_ms = static_cast<std::uint32_t>(
      std::chrono::ceil<std::chrono::milliseconds>(std::chrono::steady_clock::now() - start)
          .count());
  return compiled;
}

std::vector<std::string> with_arch(const std::vector<std::string>& options, std::string_view prefix,
                                   const std::string& arch) {
  std::vector<std::string> all;
  const bool given = std::any_of(options.begin(), options.end(), [&](const std::string& option) {
    return option.starts_with(prefix);
  });
  if (!given) all.push_back(std::string(prefix) + arch);
  all.insert(all.end(), options.begin(), options.end());
  return all;
}

std::vector<Image> images_named(const std::vector<std::string_view>& stems) {
  std::vector<Image> found;
  const auto images = specializer::rtc::loaded_images();
  for (const std::string_view stem : stems) {
    for (const auto& image : images) {
      const std::string_view path = image.path;
      if (path.substr(path.rfind('/') + 1).starts_with(stem)) {
        found.push_back({image.path, image.build_id});
      }
    }
  }
  return found;
}

}  // namespace broach::rtc
