#include <cstddef>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "broach/kernel.h"
#include "broach/kernel.hpp"
#include "runtime/c_abi_guard.hpp"
#include "runtime/c_abi_sized.hpp"

struct broach_kernel_family {
  broach::KernelFamily family;
};

struct broach_kernel {
  broach::Kernel kernel;
  std::string key;
};

namespace broach {
namespace {

using runtime::EnumReader;
using runtime::guarded;
using runtime::sized_copy;
using runtime::tell;

Error null(const char* name) {
  return {ErrorCode::kInvalidArgument, std::string(name) + " is NULL", {}};
}

Result<std::vector<KernelSource>> sources_from(const broach_kernel_source* sources,
                                               std::size_t count, std::size_t each) {
  std::vector<KernelSource> out;
  if (count > 0 && sources == nullptr) return null("sources");
  for (std::size_t i = 0; i < count; ++i) {
    const auto* const at = reinterpret_cast<const broach_kernel_source*>(
        reinterpret_cast<const char*>(sources) + i * each);
    auto source = sized_copy(at, sizeof(broach_kernel_source), "broach_kernel_source");
    if (!source) return source.error();
    if (source->name == nullptr) return null("broach_kernel_source.name");
    if (source->bytes == nullptr && source->byte_count > 0) {
      return null("broach_kernel_source.bytes");
    }
    out.push_back({source->name, source->byte_count == 0
                                     ? std::string()
                                     : std::string(source->bytes, source->byte_count)});
  }
  return out;
}

Result<KernelShape> shape_from(const broach_kernel_family* family, const char* const* values,
                               std::size_t count) {
  if (family == nullptr) return null("family");
  if (count > 0 && values == nullptr) return null("values");
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < count; ++i) {
    if (values[i] == nullptr) return null("a value");
    texts.emplace_back(values[i]);
  }
  return family->family.shape(texts);
}

broach_status hand_over(Kernel made, broach_kernel** kernel) {
  std::string key = made.info().key;
  *kernel = new broach_kernel{std::move(made), std::move(key)};
  return BROACH_OK;
}

/// What every maker of a kernel checks first.
Result<void> check_outputs(const broach_runtime* runtime, broach_kernel** kernel) {
  if (kernel == nullptr) return null("kernel");
  *kernel = nullptr;
  if (runtime == nullptr) return null("runtime");
  return {};
}

Result<KernelLaunch> launch_from(const broach_kernel_launch_args* launch) {
  auto from = sized_copy(launch, sizeof(broach_kernel_launch_args), "broach_kernel_launch_args");
  if (!from) return from.error();
  if (from->reserved != 0) {
    return Error{
        ErrorCode::kInvalidArgument,
        "broach_kernel_launch_args.reserved must be 0: fill the structure with zeros first",
        {}};
  }
  KernelLaunch to;
  for (std::size_t i = 0; i < 3; ++i) {
    to.grid[i] = from->grid[i] == 0 ? 1 : from->grid[i];
    to.block[i] = from->block[i];
    to.cluster[i] = from->cluster[i];
  }
  if (from->dynamic_shared_given != 0) to.dynamic_shared_bytes = from->dynamic_shared_bytes;
  EnumReader enums;
  enums.read(from->cooperative, Switch::kOn, "broach_kernel_launch_args.cooperative",
             to.cooperative);
  enums.read(from->programmatic, Switch::kOn, "broach_kernel_launch_args.programmatic",
             to.programmatic);
  if (!enums.all()) return enums.all().error();
  return to;
}

}  // namespace
}  // namespace broach

broach_status broach_kernel_family_load(const char* path, broach_kernel_family** family,
                                        broach_message* message) {
  using namespace broach;
  return guarded(message, [&]() -> broach_status {
    if (family == nullptr) return tell(message, null("family"));
    *family = nullptr;
    if (path == nullptr) return tell(message, null("path"));
    auto loaded = KernelFamily::load(path);
    if (!loaded) return tell(message, loaded.error());
    *family = new broach_kernel_family{*std::move(loaded)};
    return BROACH_OK;
  });
}

broach_status broach_kernel_family_create(const char* text, const broach_kernel_source* sources,
                                          size_t source_count, size_t source_size,
                                          broach_kernel_family** family, broach_message* message) {
  using namespace broach;
  return guarded(message, [&]() -> broach_status {
    if (family == nullptr) return tell(message, null("family"));
    *family = nullptr;
    if (text == nullptr) return tell(message, null("text"));
    auto read = sources_from(sources, source_count, source_size);
    if (!read) return tell(message, read.error());
    auto made = KernelFamily::from(text, *std::move(read));
    if (!made) return tell(message, made.error());
    *family = new broach_kernel_family{*std::move(made)};
    return BROACH_OK;
  });
}

void broach_kernel_family_destroy(broach_kernel_family* family) { delete family; }

broach_status broach_kernel_create(broach_runtime* runtime, const broach_kernel_family* family,
                                   const char* const* values, size_t value_count, void* stream,
                                   broach_kernel** kernel, broach_message* message) {
  using namespace broach;
  return guarded(message, [&]() -> broach_status {
    if (auto given = check_outputs(runtime, kernel); !given) return tell(message, given.error());
    auto shape = shape_from(family, values, value_count);
    if (!shape) return tell(message, shape.error());
    auto made = runtime->runtime.kernel(*shape, stream);
    return made ? hand_over(*std::move(made), kernel) : tell(message, made.error());
  });
}

broach_status broach_kernel_try_create(broach_runtime* runtime, const broach_kernel_family* family,
                                       const char* const* values, size_t value_count,
                                       broach_kernel** kernel, broach_message* message) {
  using namespace broach;
  return guarded(message, [&]() -> broach_status {
    if (auto given = check_outputs(runtime, kernel); !given) return tell(message, given.error());
    auto shape = shape_from(family, values, value_count);
    if (!shape) return tell(message, shape.error());
    auto made = runtime->runtime.try_kernel(*shape);
    if (!made) return tell(message, made.error());
    return *made ? hand_over(**std::move(made), kernel) : BROACH_OK;
  });
}

broach_status broach_kernel_compile(broach_runtime* runtime, const char* function,
                                    const char* source, broach_kernel** kernel,
                                    broach_message* message) {
  using namespace broach;
  return guarded(message, [&]() -> broach_status {
    if (auto given = check_outputs(runtime, kernel); !given) return tell(message, given.error());
    if (function == nullptr) return tell(message, null("function"));
    if (source == nullptr) return tell(message, null("source"));
    auto made = runtime->runtime.compile(function, source);
    return made ? hand_over(*std::move(made), kernel) : tell(message, made.error());
  });
}

void broach_kernel_destroy(broach_kernel* kernel) { delete kernel; }

broach_status broach_kernel_launch(const broach_kernel* kernel, const char* function,
                                   const broach_kernel_launch_args* launch,
                                   const broach_kernel_argument* arguments, size_t argument_count,
                                   void* stream, broach_message* message) {
  using namespace broach;
  static_assert(sizeof(KernelArgument) == sizeof(broach_kernel_argument) &&
                offsetof(KernelArgument, bytes) == offsetof(broach_kernel_argument, bytes));
  return guarded(message, [&]() -> broach_status {
    if (kernel == nullptr) return tell(message, null("kernel"));
    if (function == nullptr) return tell(message, null("function"));
    if (argument_count > 0 && arguments == nullptr) return tell(message, null("arguments"));
    const auto read = launch_from(launch);
    if (!read) return tell(message, read.error());
    const auto launched = kernel->kernel.launch(
        function, *read, {reinterpret_cast<const KernelArgument*>(arguments), argument_count},
        stream);
    return launched ? BROACH_OK : tell(message, launched.error());
  });
}

broach_status broach_kernel_set_symbol(const broach_kernel* kernel, const char* name,
                                       const void* bytes, size_t byte_count, void* stream,
                                       broach_message* message) {
  using namespace broach;
  return guarded(message, [&]() -> broach_status {
    if (kernel == nullptr) return tell(message, null("kernel"));
    if (name == nullptr) return tell(message, null("name"));
    if (bytes == nullptr && byte_count > 0) return tell(message, null("bytes"));
    const auto set =
        kernel->kernel.set_symbol(name, {static_cast<const std::byte*>(bytes), byte_count}, stream);
    return set ? BROACH_OK : tell(message, set.error());
  });
}

const char* broach_kernel_key(const broach_kernel* kernel) {
  return kernel == nullptr ? "" : kernel->key.c_str();
}
