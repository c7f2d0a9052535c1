#pragma once

#define CURL_DISABLE_TYPECHECK
#define CURL_DISABLE_DEPRECATION
#include <curl/curl.h>

#include <memory>
#include <span>
#include <string>

#include "broach/result.hpp"
#include "cache/remote/deadline.hpp"
#include "cache/remote/remote.hpp"

namespace broach::cache::remote {

/// libcurl's functions, found at run time: a machine without it has no remotes and everything else.
struct Curl {
  decltype(&curl_easy_init) easy_init;
  decltype(&curl_easy_cleanup) easy_cleanup;
  decltype(&curl_easy_setopt) easy_setopt;
  decltype(&curl_easy_getinfo) easy_getinfo;
  decltype(&curl_easy_reset) easy_reset;
  decltype(&curl_easy_strerror) easy_strerror;
  decltype(&curl_easy_send) easy_send;
  decltype(&curl_easy_recv) easy_recv;
  decltype(&curl_multi_init) multi_init;
  decltype(&curl_multi_cleanup) multi_cleanup;
  decltype(&curl_multi_add_handle) multi_add_handle;
  decltype(&curl_multi_remove_handle) multi_remove_handle;
  decltype(&curl_multi_perform) multi_perform;
  decltype(&curl_multi_wait) multi_wait;
  decltype(&curl_multi_info_read) multi_info_read;
  decltype(&curl_slist_append) slist_append;
  decltype(&curl_slist_free_all) slist_free_all;

  /// Opens the library once a process.
  ///
  /// Errors:  kNotFound; the detail lists what was tried.
  static Result<const Curl*> open();

  /// Opens the first of these files that is libcurl; it stays open.
  ///
  /// Errors:  as open.
  static Result<Curl> load(std::span<const char* const> files);
};

/// One transfer's handle and the loop that drives it.
///
/// Threads: one at a time.
/// Owns:    the handle, and the connections that it leaves open for its next use.
class CurlHandle {
 public:
  /// Errors:  kOutOfMemory.
  static Result<CurlHandle> make(const Curl& curl);
  ~CurlHandle();
  CurlHandle(CurlHandle&& other) noexcept;
  CurlHandle& operator=(CurlHandle&&) = delete;

  /// Forgets all options of the last transfer, keeps its connection, and sets what every transfer
  /// here has: no signals, no proxy or credentials from the environment, no redirects.
  void reset(const Access& access);

  template <class Value>
  void set(CURLoption option, Value value) {
    (void)curl_->easy_setopt(easy_, option, value);
  }

  /// Runs the transfer that was set up.
  ///
  /// Errors:  kTimedOut when the deadline passed; else by curl's own account, with the peer's name.
  Result<void> perform(Deadline& deadline, const std::string& peer);

  long response_code() const;
  curl_socket_t socket() const;
  CURL* easy() const noexcept { return easy_; }
  const Curl& curl() const noexcept { return *curl_; }

 private:
  CurlHandle(const Curl& curl, CURL* easy, CURLM* multi)
      : curl_(&curl), easy_(easy), multi_(multi) {}
  void detach() noexcept;

  const Curl* curl_;
  CURL* easy_;
  CURLM* multi_;
  bool attached_ = false;
};

/// The error of an exchange that was given up.
Error gave_up(const Deadline& deadline, const std::string& peer);

/// What curl's verdict means for an exchange with `peer`.
Error error_of(const Curl& curl, CURLcode code, const std::string& peer);

}  // namespace broach::cache::remote
