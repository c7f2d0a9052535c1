// broach-rtc: the process that run-time compilers live in. It serves one compiler over a socket
// on its standard input (specializer/compile/protocol.hpp) until the other side hangs up. It
// depends on libc alone, so that it can run on the loader and libraries of another prefix.
#include <unistd.h>

#include <cstdio>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <utility>

#include "specializer/compile/channel.hpp"
#include "tools/rtc/compiler.hpp"
#include "tools/rtc/guard.hpp"

namespace broach::rtc {
namespace {

using specializer::rtc::Channel;
using specializer::rtc::Engine;
using specializer::rtc::Failed;
using specializer::rtc::Message;
using specializer::rtc::UniqueFd;

Message failed(Error error) {
  return Failed{error.code, std::move(error.message), std::move(error.detail)};
}

Result<std::unique_ptr<Compiler>> open(const OpenRequest& request) {
  if (auto limited = limit_memory(request.memory_limit_bytes); !limited) return limited.error();
  switch (request.engine) {
    case Engine::kNvrtc:
      return open_nvrtc(request);
    case Engine::kHiprtc:
      return open_hiprtc(request);
    case Engine::kHost:
      return open_host_cxx(request);
  }
  return Error{ErrorCode::kInternal, "an unknown compiler", ""};
}

class Server {
 public:
  explicit Server(int socket) : channel_(UniqueFd(socket)) {}

  // Returns the process's exit status when the other side is gone or broke the protocol.
  int run() {
    for (;;) {
      auto request = channel_.receive({});
      if (!request) {
        if (request.error().reason == Reason::kClosed) {
          // Whoever watches the parent removes the temporary files and ends this process.
          if (!opening_) return 0;
          while (watched_) ::pause();
          end_with_parent(scratch_);
        }
        std::fprintf(stderr, "broach-rtc: %s\n", request.error().message.c_str());
        return 3;
      }
      auto sent = channel_.send(answer(*request), {});
      if (!sent && sent.error().reason == Reason::kTooLong) {
        sent = channel_.send(failed(sent.error()), {});
      }
      if (!sent) return 3;
    }
  }

 private:
  Message answer(const Message& request) try {
    if (const auto* first = std::get_if<OpenRequest>(&request)) {
      if (compiler_ != nullptr) return failed({ErrorCode::kInternal, "opened already", ""});
      if (!opening_) hold(scratch_ = first->scratch);
      opening_ = true;
      if (!watched_) watched_ = die_with_parent(channel_.fd(), scratch_);
      auto opened = open(*first);
      if (!opened) return failed(std::move(opened).error());
      compiler_ = std::move(*opened);
      return compiler_->opened();
    }
    const auto* compile = std::get_if<CompileRequest>(&request);
    if (compile == nullptr || compiler_ == nullptr) {
      return failed({ErrorCode::kInternal, "a request out of turn", ""});
    }
    auto compiled = compiler_->compile(*compile);
    if (!compiled) return failed(std::move(compiled).error());
    return std::move(*compiled);
  } catch (const std::bad_alloc&) {
    return failed({ErrorCode::kOutOfMemory, "out of memory", ""});
  }

  Channel channel_;
  std::unique_ptr<Compiler> compiler_;
  std::string scratch_;
  bool opening_ = false;
  bool watched_ = false;
};

}  // namespace
}  // namespace broach::rtc

int main(int argc, char* argv[]) {
  if (argc > 1 && std::string_view(argv[1]) == "--version") {
    std::puts("broach-rtc " BROACH_VERSION);
    return 0;
  }
  const auto socket = broach::rtc::take_socket();
  if (!socket) {
    std::fprintf(stderr, "broach-rtc: %s\n", socket.error().message.c_str());
    return 2;
  }
  // Compilers write file names into what they make: the same directory for everyone.
  if (::chdir("/") != 0) return 2;
  // No destructor of a compiler's library is run: some wait for threads that are gone.
  ::_exit(broach::rtc::Server(*socket).run());
}
