#include "cache/remote/address.hpp"

#include <sodium.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

#include <fmt/core.h>

namespace broach::cache::remote {
namespace {

struct Scheme {
  std::string_view prefix;
  Protocol protocol;
  Security security;
  std::uint16_t port;
};

constexpr Scheme kSchemes[] = {
    {"http://", Protocol::kHttp, Security::kPlain, 80},
    {"https://", Protocol::kHttp, Security::kTls, 443},
    {"redis://", Protocol::kRedis, Security::kPlain, 6379},
    {"rediss://", Protocol::kRedis, Security::kTls, 6379},
};

Error bad(std::string what) {
  return Error{ErrorCode::kInvalidArgument,
               "a remote's URL " + std::move(what) +
                   "; it is redis://, rediss://, http:// or https://[user[:password]@]host[:port]"
                   "[/path]",
               ""};
}

template <class Number>
std::optional<Number> whole_number(std::string_view digits) {
  Number value = 0;
  const char* end = digits.data() + digits.size();
  const auto parsed = std::from_chars(digits.data(), end, value);
  if (digits.empty() || parsed.ec != std::errc{} || parsed.ptr != end) return std::nullopt;
  return value;
}

std::optional<std::string> percent_decoded(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out.push_back(text[i]);
      continue;
    }
    unsigned value = 0;
    if (i + 2 >= text.size()) return std::nullopt;
    const char* end = text.data() + i + 3;
    const auto parsed = std::from_chars(text.data() + i + 1, end, value, 16);
    if (parsed.ec != std::errc{} || parsed.ptr != end) return std::nullopt;
    out.push_back(static_cast<char>(value));
    i += 2;
  }
  return out;
}

// A control character could end a header line or a URL early.
bool plain(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](unsigned char c) { return c > 0x20 && c != 0x7f; });
}

bool read_user(std::string_view text, Address& to) {
  const std::size_t colon = std::min(text.find(':'), text.size());
  const auto user = percent_decoded(text.substr(0, colon));
  const auto password = percent_decoded(text.substr(std::min(colon + 1, text.size())));
  if (!user || !password) return false;
  to.user = *user;
  to.password = *password;
  return plain(to.user) && plain(to.password);
}

bool is_letter_or_digit(unsigned char c) {
  return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z');
}

// A name or an IPv4 address. What is not ASCII is left to whoever resolves it.
bool is_name(std::string_view host) {
  return std::all_of(host.begin(), host.end(), [](unsigned char c) {
    return is_letter_or_digit(c) || c == '-' || c == '.' || c == '_' || c >= 0x80;
  });
}

// An IPv6 address, with a zone where it has one (fe80::1%25eth0).
bool is_ipv6(std::string_view host) {
  return host.find(':') != std::string_view::npos &&
         std::all_of(host.begin(), host.end(), [](unsigned char c) {
           return is_letter_or_digit(c) || c == ':' || c == '.' || c == '%' || c == '-' || c == '_';
         });
}

bool read_host(std::string_view text, Address& to) {
  std::string_view rest;
  if (text.starts_with('[')) {
    const std::size_t close = text.find(']');
    if (close == std::string_view::npos) return false;
    to.host = text.substr(1, close - 1);
    if (!is_ipv6(to.host)) return false;
    rest = text.substr(close + 1);
  } else {
    const std::size_t colon = std::min(text.find(':'), text.size());
    to.host = text.substr(0, colon);
    if (!is_name(to.host)) return false;
    rest = text.substr(colon);
  }
  if (to.host.empty()) return false;
  if (rest.empty()) return true;
  if (!rest.starts_with(':')) return false;
  const auto port = whole_number<std::uint16_t>(rest.substr(1));
  if (!port || *port == 0) return false;
  to.port = *port;
  return true;
}

std::string bracketed(const std::string& host) {
  return host.find(':') == std::string::npos ? host : '[' + host + ']';
}

Result<void> read_path(std::string_view path, std::string_view query, Address& to) {
  if (to.protocol == Protocol::kHttp) {
    to.path = path.empty() ? "/" : std::string(path);
    to.query = query;
    return {};
  }
  if (!query.empty()) return bad("with redis:// takes no query");
  if (path.empty() || path == "/") return {};
  const auto database = whole_number<std::uint32_t>(path.substr(1));
  if (!database) return bad("with redis:// takes a database's number as its path");
  to.database = *database;
  return {};
}

std::string sha256_hex(std::string_view text) {
  std::array<unsigned char, crypto_hash_sha256_BYTES> digest;
  crypto_hash_sha256(digest.data(), reinterpret_cast<const unsigned char*>(text.data()),
                     text.size());
  std::string hex;
  for (const unsigned char byte : digest) hex += fmt::format("{:02x}", byte);
  return hex;
}

void replace_all(std::string& text, std::string_view what, std::string_view by) {
  for (std::size_t at = text.find(what); at != std::string::npos;
       at = text.find(what, at + by.size())) {
    text.replace(at, what.size(), by);
  }
}

}  // namespace

Result<Address> parse_address(std::string_view url) {
  const auto* scheme =
      std::find_if(std::begin(kSchemes), std::end(kSchemes),
                   [&](const Scheme& known) { return url.starts_with(known.prefix); });
  if (scheme == std::end(kSchemes)) {
    // Not shown: a URL that is mistyped may begin with its user and password.
    return bad(url.find("://") == std::string_view::npos ? "has no scheme"
                                                         : "begins with another scheme");
  }
  if (!plain(url)) return bad("holds a space or a control character");
  Address address;
  address.protocol = scheme->protocol;
  address.security = scheme->security;
  address.port = scheme->port;
  const std::string_view rest = url.substr(scheme->prefix.size());
  if (rest.find('#') != std::string_view::npos) return bad("has a fragment (#)");
  const std::size_t authority_end = std::min(rest.find_first_of("/?"), rest.size());
  std::string_view authority = rest.substr(0, authority_end);
  // The last @: a password may hold one that nobody encoded.
  if (const std::size_t at = authority.rfind('@'); at != std::string_view::npos) {
    if (!read_user(authority.substr(0, at), address)) return bad("has a user that cannot be read");
    authority = authority.substr(at + 1);
  }
  if (!read_host(authority, address)) return bad("has no host or a wrong port");
  const std::string_view tail = rest.substr(authority_end);
  const std::size_t question = std::min(tail.find('?'), tail.size());
  const std::string_view path = tail.substr(0, question);
  // The name of a remote shows its path, and a password with a slash in it would end up there.
  if (path.find('@') != std::string_view::npos) {
    return bad(
        "has an @ behind its first slash; in a password write %2F for a slash, in a path "
        "%40 for an @");
  }
  if (auto read = read_path(path, tail.substr(std::min(question + 1, tail.size())), address);
      !read) {
    return read.error();
  }
  address.name = fmt::format(
      "{}{}:{}{}", scheme->prefix, bracketed(address.host), address.port,
      address.protocol == Protocol::kHttp ? address.path : fmt::format("/{}", address.database));
  return address;
}

std::string origin_of(const Address& address) {
  return fmt::format("{}://{}:{}", address.security == Security::kTls ? "https" : "http",
                     bracketed(address.host), address.port);
}

std::string object_url(const Address& address, const KeyRecord& key) {
  std::string tail = address.path;
  if (!address.query.empty()) tail += '?' + address.query;
  if (tail.find("{key}") == std::string::npos && tail.find("{sha256}") == std::string::npos) {
    tail = address.path + (address.path.ends_with('/') ? "" : "/") + "{key}";
    if (!address.query.empty()) tail += '?' + address.query;
  }
  replace_all(tail, "{key}", key.key.hex());
  replace_all(tail, "{sha256}", sha256_hex(key.stream));
  return origin_of(address) + tail;
}

}  // namespace broach::cache::remote
