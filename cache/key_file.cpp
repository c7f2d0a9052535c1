#include "cache/key_file.hpp"

#include <fcntl.h>
#include <sodium.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cctype>
#include <cerrno>
#include <span>

#include <fmt/core.h>

#include "cache/fd.hpp"
#include "cache/file.hpp"
#include "cache/os_error.hpp"
#include "cache/trusted_path.hpp"

namespace broach::cache {
namespace {

constexpr std::string_view kPublicTag = "broach-public-key-1";
constexpr std::string_view kSecretTag = "broach-secret-key-1";
constexpr std::size_t kDigits = 64;
constexpr std::size_t kMaxNameBytes = 64;
constexpr std::uint64_t kMaxFileBytes = 4096;

struct Line {
  std::array<std::uint8_t, kDigits / 2> bytes{};
  std::string name;

  Line() = default;
  ~Line() { sodium_memzero(bytes.data(), bytes.size()); }
  Line(const Line&) = default;
  Line& operator=(const Line&) = default;
};

Error damaged(std::string_view what) {
  return Error{ErrorCode::kDamaged, fmt::format("not a key file: {}", what), ""};
}

Result<Line> parse(std::string_view text, std::string_view tag) {
  if (!text.ends_with('\n')) return damaged("its one line does not end");
  text.remove_suffix(1);
  if (!text.starts_with(tag) || text.size() < tag.size() + 1 + kDigits + 1 ||
      text[tag.size()] != ' ') {
    return damaged(fmt::format("it is no line \"{} <{} digits> <name>\"", tag, kDigits));
  }
  text.remove_prefix(tag.size() + 1);
  const std::string_view digits = text.substr(0, kDigits);
  if (digits.find_first_not_of("0123456789abcdef") != std::string_view::npos ||
      text[kDigits] != ' ') {
    return damaged(fmt::format("the key is not {} lower-case hexadecimal digits", kDigits));
  }
  Line line;
  line.name = text.substr(kDigits + 1);
  if (auto fine = check_key_name(line.name); !fine) return damaged(fine.error().message);
  if (sodium_hex2bin(line.bytes.data(), line.bytes.size(), digits.data(), digits.size(), nullptr,
                     nullptr, nullptr) != 0) {
    return damaged("its digits do not parse");
  }
  return line;
}

std::string line_of(std::string_view tag, std::span<const std::uint8_t, kDigits / 2> bytes,
                    std::string_view name) {
  std::string text(tag);
  text += ' ';
  for (const std::uint8_t byte : bytes) text += fmt::format("{:02x}", byte);
  return fmt::format("{} {}\n", text, name);
}

Result<TrustedFile> open_key_file(const std::string& path) {
  TrustedFile file;
  file.fd = Fd(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  if (!file.fd) return os_error("open key file", path, errno);
  if (fstat(file.fd.get(), &file.status) != 0) return os_error("examine", path, errno);
  if (!S_ISREG(file.status.st_mode)) {
    return Error{ErrorCode::kDamaged, fmt::format("key file {} is not a regular file", path), ""};
  }
  return file;
}

// Somebody may give the key where its file's name belongs, and what is printed here ends in logs.
bool may_be_a_key(std::string_view name) {
  std::size_t digits = 0;
  for (const char c : name) {
    digits = std::isxdigit(static_cast<unsigned char>(c)) != 0 ? digits + 1 : 0;
    if (digits == kDigits) return true;
  }
  return name.find(kSecretTag) != std::string_view::npos;
}

Result<std::string> read_text(const TrustedFile& file, const std::string& path) {
  const auto size = static_cast<std::uint64_t>(file.status.st_size);
  if (size > kMaxFileBytes) {
    return Error{
        ErrorCode::kDamaged,
        fmt::format("{} has {} bytes; no key file has more than {}", path, size, kMaxFileBytes),
        ""};
  }
  auto bytes = read_bytes(file.fd, 0, size, path);
  if (!bytes) return bytes.error();
  std::string text(reinterpret_cast<const char*>(bytes->data()), bytes->size());
  sodium_memzero(bytes->data(), bytes->size());
  return text;
}

Error with_path(Error error, const std::string& path) {
  error.message = fmt::format("{}: {}", path, error.message);
  return error;
}

Result<void> write_new(const std::string& path, std::string_view text, mode_t mode) {
  const Fd file(::open(path.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_NOFOLLOW | O_CLOEXEC, mode));
  if (!file && errno == EEXIST) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("{} exists, and a key is never replaced; name another file or move "
                             "that one away",
                             path),
                 "EEXIST"};
  }
  if (!file) return os_error("create key file", path, errno);
  auto written = write_bytes(file, std::as_bytes(std::span(text)), path);
  if (written && fsync(file.get()) != 0) written = os_error("sync", path, errno);
  if (!written) (void)unlink(path.c_str());
  return written;
}

}  // namespace

Result<void> check_key_name(std::string_view name) {
  const auto printable = [](char c) { return c >= 0x20 && c != 0x7f; };
  bool plain = true;
  for (const char c : name) plain = plain && printable(c);
  if (plain && !name.empty() && name.size() <= kMaxNameBytes) return {};
  return Error{ErrorCode::kInvalidArgument,
               fmt::format("a key's name has 1 to {} printable ASCII characters", kMaxNameBytes),
               ""};
}

Result<PublicKey> parse_public_key(std::string_view text) {
  const auto line = parse(text, kPublicTag);
  if (!line) return line.error();
  // A point of small order would let one signature match every message.
  if (crypto_core_ed25519_is_valid_point(line->bytes.data()) != 1) {
    return damaged("its digits are no Ed25519 public key");
  }
  return PublicKey{line->bytes, line->name};
}

std::string to_text(const PublicKey& key) { return line_of(kPublicTag, key.bytes, key.name); }

Result<SecretKey> parse_secret_key(std::string_view text) {
  const auto line = parse(text, kSecretTag);
  if (!line) return line.error();
  return SecretKey::from_seed(line->bytes, line->name);
}

std::string to_text(const SecretKey& key) {
  return line_of(kSecretTag, key.seed(), key.public_key().name);
}

Result<PublicKey> read_public_key(const std::filesystem::path& path) {
  const auto file = open_key_file(path.string());
  if (!file) return file.error();
  const auto text = read_text(*file, path.string());
  if (!text) return text.error();
  auto key = parse_public_key(*text);
  if (!key) return with_path(key.error(), path.string());
  return key;
}

Result<SecretKey> read_secret_key(const std::filesystem::path& path) {
  if (may_be_a_key(path.string())) {
    return Error{ErrorCode::kInvalidArgument,
                 "the name of a secret key's file looks like a key and is not shown; name the file "
                 "that holds the key",
                 ""};
  }
  // Whoever could change the file could choose what others take as signed by this user.
  const auto file = open_trusted_file(path, {Trust::kInstalled, "secret key"});
  if (!file) return file.error();
  if ((file->status.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
    return Error{ErrorCode::kDenied,
                 fmt::format("secret key {} has mode {:04o}: others can use it; run `chmod 600 {}`",
                             path.string(), file->status.st_mode & 07777U, path.string()),
                 "unsafe"};
  }
  auto text = read_text(*file, path.string());
  if (!text) return text.error();
  auto key = parse_secret_key(*text);
  sodium_memzero(text->data(), text->size());
  if (!key) return with_path(key.error(), path.string());
  return key;
}

Result<void> write_public_key(const std::filesystem::path& path, const PublicKey& key) {
  return write_new(path.string(), to_text(key), 0644);
}

Result<void> write_secret_key(const std::filesystem::path& path, const SecretKey& key) {
  std::string text = to_text(key);
  auto written = write_new(path.string(), text, 0600);
  sodium_memzero(text.data(), text.size());
  return written;
}

}  // namespace broach::cache
