#include "cache/remote/curl.hpp"

#include <dlfcn.h>

#include <utility>

#include <fmt/core.h>

namespace broach::cache::remote {
namespace {

template <class Function>
bool find(void* library, const char* name, Function& to) {
  to = reinterpret_cast<Function>(dlsym(library, name));
  return to != nullptr;
}

bool find_all(void* library, Curl& curl) {
  return find(library, "curl_easy_init", curl.easy_init) &&
         find(library, "curl_easy_cleanup", curl.easy_cleanup) &&
         find(library, "curl_easy_setopt", curl.easy_setopt) &&
         find(library, "curl_easy_getinfo", curl.easy_getinfo) &&
         find(library, "curl_easy_reset", curl.easy_reset) &&
         find(library, "curl_easy_strerror", curl.easy_strerror) &&
         find(library, "curl_easy_send", curl.easy_send) &&
         find(library, "curl_easy_recv", curl.easy_recv) &&
         find(library, "curl_multi_init", curl.multi_init) &&
         find(library, "curl_multi_cleanup", curl.multi_cleanup) &&
         find(library, "curl_multi_add_handle", curl.multi_add_handle) &&
         find(library, "curl_multi_remove_handle", curl.multi_remove_handle) &&
         find(library, "curl_multi_perform", curl.multi_perform) &&
         find(library, "curl_multi_wait", curl.multi_wait) &&
         find(library, "curl_multi_info_read", curl.multi_info_read) &&
         find(library, "curl_slist_append", curl.slist_append) &&
         find(library, "curl_slist_free_all", curl.slist_free_all);
}

// The second is the same library with another TLS below it.
constexpr const char* kFiles[] = {"libcurl.so.4", "libcurl-gnutls.so.4"};

}  // namespace

// Never closed: curl's threads (a name's resolution that was given up) may outlive a transfer.
Result<Curl> Curl::load(std::span<const char* const> files) {
  std::string tried;
  for (const char* file : files) {
    void* library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      tried += fmt::format("{}\n", dlerror());
      continue;
    }
    Curl curl{};
    decltype(&curl_global_init) global_init = nullptr;
    if (!find_all(library, curl) || !find(library, "curl_global_init", global_init) ||
        global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
      tried += fmt::format("{}: it lacks a function or does not start\n", file);
      continue;
    }
    return curl;
  }
  return Error{ErrorCode::kNotFound,
               "remotes need libcurl, which cannot be opened; install libcurl4", tried};
}

Result<const Curl*> Curl::open() {
  static const Result<Curl> loaded = load(kFiles);
  if (!loaded) return loaded.error();
  return &*loaded;
}

Result<CurlHandle> CurlHandle::make(const Curl& curl) {
  CURLM* multi = curl.multi_init();
  CURL* easy = multi == nullptr ? nullptr : curl.easy_init();
  if (easy == nullptr) {
    if (multi != nullptr) (void)curl.multi_cleanup(multi);
    return Error{ErrorCode::kOutOfMemory, "curl has no memory for a transfer", "memory"};
  }
  return CurlHandle(curl, easy, multi);
}

CurlHandle::CurlHandle(CurlHandle&& other) noexcept
    : curl_(other.curl_),
      easy_(std::exchange(other.easy_, nullptr)),
      multi_(std::exchange(other.multi_, nullptr)),
      attached_(std::exchange(other.attached_, false)) {}

CurlHandle::~CurlHandle() {
  if (easy_ == nullptr) return;
  detach();
  curl_->easy_cleanup(easy_);
  (void)curl_->multi_cleanup(multi_);
}

void CurlHandle::detach() noexcept {
  if (std::exchange(attached_, false)) (void)curl_->multi_remove_handle(multi_, easy_);
}

void CurlHandle::reset(const Access& access) {
  detach();
  curl_->easy_reset(easy_);
  set(CURLOPT_NOSIGNAL, 1L);
  // The environment is not read here: neither a proxy nor a .netrc comes into it.
  set(CURLOPT_PROXY, "");
  set(CURLOPT_NETRC, long{CURL_NETRC_IGNORED});
  set(CURLOPT_FOLLOWLOCATION, 0L);  // A redirect could carry the token elsewhere.
  set(CURLOPT_PROTOCOLS, long{CURLPROTO_HTTP | CURLPROTO_HTTPS});
  set(CURLOPT_SSL_VERIFYPEER, 1L);
  set(CURLOPT_SSL_VERIFYHOST, 2L);
  set(CURLOPT_TCP_NODELAY, 1L);
#if LIBCURL_VERSION_NUM >= 0x075700
  set(CURLOPT_QUICK_EXIT, 1L);  // A name's resolution that hangs is left behind, not waited for.
#endif
  if (!access.certificates.empty()) set(CURLOPT_CAINFO, access.certificates.c_str());
}

Result<void> CurlHandle::perform(Deadline& deadline, const std::string& peer) {
  detach();
  if (curl_->multi_add_handle(multi_, easy_) != CURLM_OK) {
    return Error{ErrorCode::kOutOfMemory, "curl has no memory for a transfer", "memory"};
  }
  attached_ = true;
  for (int running = 1;;) {
    if (curl_->multi_perform(multi_, &running) != CURLM_OK) {
      return Error{ErrorCode::kIo, "curl cannot go on with " + peer, "curl"};
    }
    if (running == 0) break;
    if (deadline.passed()) return gave_up(deadline, peer);
    (void)curl_->multi_wait(multi_, nullptr, 0, static_cast<int>(deadline.nap().count()), nullptr);
  }
  int left = 0;
  const CURLMsg* done = curl_->multi_info_read(multi_, &left);
  if (done == nullptr || done->msg != CURLMSG_DONE) {
    return Error{ErrorCode::kIo, "curl ended " + peer + " without a verdict", "curl"};
  }
  if (done->data.result != CURLE_OK) return error_of(*curl_, done->data.result, peer);
  return {};
}

long CurlHandle::response_code() const {
  long code = 0;
  (void)curl_->easy_getinfo(easy_, CURLINFO_RESPONSE_CODE, &code);
  return code;
}

curl_socket_t CurlHandle::socket() const {
  curl_socket_t socket = CURL_SOCKET_BAD;
  (void)curl_->easy_getinfo(easy_, CURLINFO_ACTIVESOCKET, &socket);
  return socket;
}

Error gave_up(const Deadline& deadline, const std::string& peer) {
  if (deadline.stopped()) {
    return {ErrorCode::kTimedOut, fmt::format("{} was left as the cache closed", peer), "stopped"};
  }
  return {ErrorCode::kTimedOut,
          fmt::format("{} did not answer in time (given up after {} ms)", peer,
                      deadline.elapsed().count()),
          "timed_out"};
}

Error error_of(const Curl& curl, CURLcode code, const std::string& peer) {
  const auto made = [&](ErrorCode kind, const char* cause) {
    return Error{kind, fmt::format("{}: {}", peer, curl.easy_strerror(code)), cause};
  };
  switch (code) {
    case CURLE_COULDNT_CONNECT:
      return made(ErrorCode::kIo, "refused");
    case CURLE_COULDNT_RESOLVE_HOST:
      return made(ErrorCode::kIo, "no_such_host");
    case CURLE_OPERATION_TIMEDOUT:
      return made(ErrorCode::kTimedOut, "timed_out");
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_CIPHER:
      return made(ErrorCode::kDenied, "tls");
    case CURLE_PARTIAL_FILE:
    case CURLE_GOT_NOTHING:
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR:
      return made(ErrorCode::kIo, "closed");
    case CURLE_FILESIZE_EXCEEDED:
      return made(ErrorCode::kUnsupported, "too_long");
    default:
      return made(ErrorCode::kUnsupported, "protocol");
  }
}

}  // namespace broach::cache::remote
