#include "cache/remote/http_remote.hpp"

#include <algorithm>
#include <cstring>
#include <memory>

#include <fmt/core.h>

namespace broach::cache::remote {

enum class Method : std::uint8_t { kGet, kPut, kHead };

/// One request and its response, filled by curl's callbacks.
struct HttpRemote::Exchange {
  Method method;
  Deadline& deadline;
  std::string_view body{};  ///< What is still to be sent.
  std::string received{};
  std::uint64_t header_bytes = 0;
  bool too_long = false;
};

namespace {

// Headers, those of "100 Continue" and trailers included: curl keeps them all.
constexpr std::uint64_t kMaxHeaderBytes = 256 * 1024;

template <class Exchange>
std::size_t on_header(char*, std::size_t size, std::size_t count, void* to) {
  auto& exchange = *static_cast<Exchange*>(to);
  exchange.deadline.progress();
  exchange.header_bytes += size * count;
  exchange.too_long = exchange.header_bytes > kMaxHeaderBytes;
  return exchange.too_long ? 0 : size * count;
}

template <class Exchange>
std::size_t on_body(char* bytes, std::size_t size, std::size_t count, void* to) {
  auto& exchange = *static_cast<Exchange*>(to);
  const std::size_t length = size * count;
  exchange.deadline.progress();
  exchange.too_long = length > kMaxValueBytes - exchange.received.size();
  if (exchange.too_long) return 0;
  exchange.received.append(bytes, length);
  return length;
}

template <class Exchange>
std::size_t on_send(char* to, std::size_t size, std::size_t count, void* from) {
  auto& exchange = *static_cast<Exchange*>(from);
  const std::size_t length = std::min(size * count, exchange.body.size());
  exchange.deadline.progress();
  std::memcpy(to, exchange.body.data(), length);
  exchange.body.remove_prefix(length);
  return length;
}

class Headers {
 public:
  explicit Headers(const Curl& curl) : curl_(curl) {}
  ~Headers() { curl_.slist_free_all(list_); }
  Headers(const Headers&) = delete;
  Headers& operator=(const Headers&) = delete;

  void add(const std::string& line) {
    if (curl_slist* longer = curl_.slist_append(list_, line.c_str())) list_ = longer;
  }
  curl_slist* get() const noexcept { return list_; }

 private:
  const Curl& curl_;
  curl_slist* list_ = nullptr;
};

bool ok(long status) { return status >= 200 && status < 300; }

Error refused(long status, std::string_view asked, const std::string& peer) {
  const bool denied = status == 401 || status == 403;
  return {denied ? ErrorCode::kDenied : ErrorCode::kIo,
          fmt::format("{} answers {} with HTTP status {}{}", peer, asked, status,
                      denied ? "; check the token" : ""),
          fmt::format("http_{}", status)};
}

}  // namespace

Result<long> HttpRemote::run(const KeyRecord& key, Exchange& exchange) {
  std::optional<CurlHandle> handle = idle_.take();
  if (!handle) {
    auto made = CurlHandle::make(curl_);
    if (!made) return made.error();
    handle.emplace(std::move(*made));
  }
  handle->reset(access_);
  const std::string url = object_url(access_.address, key);
  handle->set(CURLOPT_URL, url.c_str());
  handle->set(CURLOPT_HEADERFUNCTION, &on_header<Exchange>);
  handle->set(CURLOPT_HEADERDATA, static_cast<void*>(&exchange));
  handle->set(CURLOPT_WRITEFUNCTION, &on_body<Exchange>);
  handle->set(CURLOPT_WRITEDATA, static_cast<void*>(&exchange));
  handle->set(CURLOPT_MAXFILESIZE_LARGE, static_cast<curl_off_t>(kMaxValueBytes));
  if (exchange.method == Method::kHead) handle->set(CURLOPT_NOBODY, 1L);
  Headers headers(curl_);
  if (exchange.method == Method::kPut) {
    handle->set(CURLOPT_UPLOAD, 1L);
    handle->set(CURLOPT_READFUNCTION, &on_send<Exchange>);
    handle->set(CURLOPT_READDATA, static_cast<void*>(&exchange));
    handle->set(CURLOPT_INFILESIZE_LARGE, static_cast<curl_off_t>(exchange.body.size()));
    headers.add("Content-Type: application/octet-stream");
    headers.add("Expect:");  // Waiting for a leave to send costs more than sending.
  }
  const Address& address = access_.address;
  const std::string& password = access_.secret.empty() ? address.password : access_.secret;
  if (!address.user.empty()) {
    handle->set(CURLOPT_HTTPAUTH, static_cast<long>(CURLAUTH_BASIC));
    handle->set(CURLOPT_USERNAME, address.user.c_str());
    handle->set(CURLOPT_PASSWORD, password.c_str());
  } else if (!password.empty()) {
    headers.add("Authorization: Bearer " + password);
  }
  handle->set(CURLOPT_HTTPHEADER, headers.get());
  const auto done = handle->perform(exchange.deadline, name());
  if (exchange.too_long) {
    return Error{ErrorCode::kUnsupported,
                 fmt::format("{} sends a value of more than {} bytes, or headers of more than {}",
                             name(), kMaxValueBytes, kMaxHeaderBytes),
                 "too_long"};
  }
  if (!done) return done.error();
  const long status = handle->response_code();
  // Nothing of this exchange is pointed to from a handle that waits.
  handle->reset(access_);
  idle_.put_back(std::move(*handle));
  return status;
}

Result<std::optional<std::string>> HttpRemote::get(const KeyRecord& key, Deadline& deadline) {
  Exchange exchange{Method::kGet, deadline};
  const auto status = run(key, exchange);
  if (!status) return status.error();
  if (*status == 404 || *status == 410) return std::optional<std::string>{};
  if (*status != 200) return refused(*status, "GET", name());
  return std::optional<std::string>(std::move(exchange.received));
}

Result<void> HttpRemote::put(const KeyRecord& key, std::string_view value, Deadline& deadline) {
  Exchange exchange{Method::kPut, deadline, value};
  const auto status = run(key, exchange);
  if (!status) return status.error();
  if (!ok(*status)) return refused(*status, "PUT", name());
  return {};
}

Result<bool> HttpRemote::has(const KeyRecord& key, Deadline& deadline) {
  Exchange exchange{Method::kHead, deadline};
  const auto status = run(key, exchange);
  if (!status) return status.error();
  if (*status == 404 || *status == 410) return false;
  if (!ok(*status)) return refused(*status, "HEAD", name());
  return true;
}

}  // namespace broach::cache::remote
