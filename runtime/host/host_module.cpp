#include "runtime/host/host_module.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/core.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <utility>

namespace broach::runtime::host {
namespace {

/// A file descriptor that is closed with its owner.
class OwnedFd {
 public:
  explicit OwnedFd(int fd) noexcept : fd_(fd) {}
  ~OwnedFd() {
    if (fd_ >= 0) close(fd_);
  }
  OwnedFd(OwnedFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  OwnedFd& operator=(OwnedFd&&) = delete;

  int get() const noexcept { return fd_; }
  bool ok() const noexcept { return fd_ >= 0; }

 private:
  int fd_;
};

bool write_all(int fd, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
  return true;
}

/// A path to an open file that no earlier load in this process used.
///
/// The loader takes an object whose path it has seen for the one it has loaded, and descriptor
/// numbers are used again; so each path spells a serial number in redundant "/." components.
std::string unused_path_of(int fd) {
  static std::atomic<std::uint32_t> serial = 0;
  std::string path = "/proc/self/fd";
  for (std::uint32_t rest = ++serial; rest != 0; rest >>= 1) path += (rest & 1u) != 0 ? "/." : "//";
  return path + "/" + std::to_string(fd);
}

void* open_anonymous(std::span<const std::byte> bytes) {
#ifdef MFD_EXEC
  OwnedFd file(memfd_create("broach-kernel", MFD_CLOEXEC | MFD_EXEC));
  if (!file.ok()) file = OwnedFd(memfd_create("broach-kernel", MFD_CLOEXEC));
#else
  const OwnedFd file(memfd_create("broach-kernel", MFD_CLOEXEC));
#endif
  if (!file.ok() || !write_all(file.get(), bytes)) return nullptr;
  return dlopen(unused_path_of(file.get()).c_str(), RTLD_NOW | RTLD_LOCAL);
}

void* open_private_file(std::span<const std::byte> bytes) {
  for (const char* parent : {"/dev/shm", "/tmp", "/var/tmp"}) {
    std::string directory = std::string(parent) + "/broach-XXXXXX";
    if (mkdtemp(directory.data()) == nullptr) continue;
    const std::string path = directory + "/kernel.so";
    void* handle = nullptr;
    {
      const OwnedFd file(
          open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, S_IRUSR | S_IWUSR));
      if (file.ok() && write_all(file.get(), bytes)) {
        handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
      }
    }
    unlink(path.c_str());
    rmdir(directory.c_str());
    if (handle != nullptr) return handle;
  }
  return nullptr;
}

}  // namespace

Result<std::unique_ptr<HostObject>> HostObject::load(std::span<const std::byte> bytes,
                                                     std::span<const std::string> functions) {
  std::unique_ptr<HostObject> object(new HostObject);
  object->handle_ = open_anonymous(bytes);
  std::string loader_words;
  if (object->handle_ == nullptr) {
    const char* words = dlerror();
    loader_words = words != nullptr ? words : std::strerror(errno);
    object->handle_ = open_private_file(bytes);
  }
  if (object->handle_ == nullptr) {
    return Error{
        ErrorCode::kDriver,
        fmt::format("the loader refuses a host kernel of {} bytes: {}", bytes.size(), loader_words),
        {}};
  }
  for (const std::string& name : functions) {
    const auto* record = static_cast<const BroachHostRecord*>(
        dlsym(object->handle_, (BROACH_HOST_RECORD_PREFIX + name).c_str()));
    void* entry = dlsym(object->handle_, (BROACH_HOST_ENTRY_PREFIX + name).c_str());
    if (record == nullptr || entry == nullptr || record->magic != BROACH_HOST_MAGIC) {
      return Error{ErrorCode::kDamaged,
                   fmt::format("the host object does not hold the kernel {}", name),
                   {}};
    }
    if (record->abi_version != BROACH_HOST_ABI_VERSION) {
      return Error{ErrorCode::kDamaged,
                   fmt::format("the kernel {} was compiled for host ABI {}; this build runs {}",
                               name, record->abi_version, BROACH_HOST_ABI_VERSION),
                   {}};
    }
    const auto* geometry = static_cast<const BroachLaunchGeometry*>(
        dlsym(object->handle_, (BROACH_GEOMETRY_PREFIX + name).c_str()));
    if (geometry != nullptr && (geometry->magic != BROACH_GEOMETRY_MAGIC ||
                                geometry->version != BROACH_GEOMETRY_VERSION)) {
      return Error{ErrorCode::kDamaged,
                   fmt::format("the kernel {} states its geometry in version {} with magic {:#x}; "
                               "this build reads {} and {:#x}",
                               name, geometry->version, geometry->magic, BROACH_GEOMETRY_VERSION,
                               BROACH_GEOMETRY_MAGIC),
                   {}};
    }
    object->kernels_.push_back({name, record, reinterpret_cast<BroachHostEntry>(entry), geometry});
  }
  return object;
}

HostVariable HostObject::variable(std::string_view name) const {
  void* const address = dlsym(handle_, std::string(name).c_str());
  if (address == nullptr) return {};
  // The object's own symbols: the loader would go on to the libraries that it needs.
  Dl_info info{}, own{};
  void* symbol = nullptr;
  if (kernels_.empty() || dladdr1(address, &info, &symbol, RTLD_DL_SYMENT) == 0 ||
      dladdr(reinterpret_cast<const void*>(kernels_[0].record), &own) == 0 ||
      info.dli_fbase != own.dli_fbase || symbol == nullptr) {
    return {};
  }
  const auto& entry = *static_cast<const ElfW(Sym)*>(symbol);
  if (ELF64_ST_TYPE(entry.st_info) != STT_OBJECT) return {};
  return {address, static_cast<std::size_t>(entry.st_size)};
}

HostObject::~HostObject() {
  if (handle_ != nullptr) dlclose(handle_);
}

}  // namespace broach::runtime::host
