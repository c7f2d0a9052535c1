#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "broach/result.hpp"
#include "specializer/version.hpp"

/// What the library and the worker program `broach-rtc` say to each other.
///
///   frame := "brt2" body_bytes:u32le body
///   body  := verb:u8 field*
///   field := tag:u8 field_bytes:u32le bytes
///
/// A body is read whole before any of it is looked at. Every length is checked against what is
/// left and against the bounds below; a field that a verb does not have, one that is missing and
/// one that stands twice where it may not are all refused.
namespace broach::specializer::rtc {

inline constexpr std::size_t kHeaderBytes = 8;
inline constexpr std::size_t kMaxBodyBytes = std::size_t{256} << 20;
inline constexpr std::size_t kMaxFields = 8192;
inline constexpr std::size_t kMaxNameBytes = 4096;

/// Which compiler a worker is to open: values are on the wire and in step with CompilerKind.
enum class Engine : std::uint8_t { kNvrtc = 0, kHiprtc = 1, kHost = 2 };

/// First request to a worker: become this compiler.
struct OpenRequest {
  Engine engine = Engine::kHost;
  std::string path;  ///< Absolute: a library, or the host compiler's driver.
  std::uint64_t memory_limit_bytes = 0;
  std::string scratch;  ///< An empty directory of the worker's own, for temporary files.

  friend bool operator==(const OpenRequest&, const OpenRequest&) = default;
};

/// A file that is part of a compiler, as the worker found or mapped it.
struct Image {
  std::string path;
  std::string build_id;  ///< Empty when the file states none.

  friend bool operator==(const Image&, const Image&) = default;
};

/// The answer: what was really loaded.
struct Opened {
  std::string key_text;
  std::string words;
  std::vector<Image> images;  ///< The compiler itself first, then what it stands on.
  std::vector<std::string> targets;
  Version toolkit;  ///< As the compiler's interface states it; none where it has no such thing.

  friend bool operator==(const Opened&, const Opened&) = default;
};

struct Source {
  std::string name;
  std::string bytes;

  friend bool operator==(const Source&, const Source&) = default;
};

struct CompileRequest {
  std::string arch;
  std::vector<Source> sources;  ///< The main source first.
  std::vector<std::string> options;
  /// C++ that names functions whose names in the binary are the compiler's to choose.
  std::vector<std::string> name_expressions{};

  friend bool operator==(const CompileRequest&, const CompileRequest&) = default;
};

struct Compiled {
  std::string binary;
  std::string log;
  std::uint32_t compile_ms = 0;
  std::vector<std::string> lowered_names{};  ///< One a name expression, in their order.

  friend bool operator==(const Compiled&, const Compiled&) = default;
};

/// The answer to either request when it could not be served; the worker lives on.
struct Failed {
  ErrorCode code = ErrorCode::kInternal;
  std::string message;
  std::string detail;

  friend bool operator==(const Failed&, const Failed&) = default;
};

using Message = std::variant<OpenRequest, CompileRequest, Opened, Compiled, Failed>;

/// A whole frame, header included.
///
/// Errors:  kLimitExceeded (reason kTooLong) naming the bound that the message would break.
Result<std::string> encode(const Message& message);

/// Reads a frame's header.
///
/// Errors:  kDamaged on another magic or a body over the bound.
Result<std::size_t> body_bytes(std::string_view header);

/// Reads a frame's body.
///
/// Errors:  kDamaged with what did not parse.
Result<Message> decode(std::string_view body);

}  // namespace broach::specializer::rtc
