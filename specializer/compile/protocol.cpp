#include "specializer/compile/protocol.hpp"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

namespace broach::specializer::rtc {
namespace {

constexpr std::string_view kMagic = "brt2";

enum class Verb : std::uint8_t {
  kOpen = 1,
  kCompile = 2,
  kOpened = 3,
  kCompiled = 4,
  kFailed = 5,
};

enum class Tag : std::uint8_t {
  kEngine = 1,
  kPath = 2,
  kMemoryLimit = 3,
  kScratch = 4,
  kKeyText = 5,
  kWords = 6,
  kImagePath = 7,
  kTarget = 8,
  kArch = 9,
  kSourceName = 10,
  kSourceBytes = 11,
  kOption = 12,
  kBinary = 13,
  kLog = 14,
  kMilliseconds = 15,
  kCode = 16,
  kMessage = 17,
  kDetail = 18,
  kImageId = 19,
  kToolkitMajor = 20,
  kToolkitMinor = 21,
  kNameExpression = 22,
  kLoweredName = 23,
};

// The bytes a field of a tag may have at most.
std::size_t bound_of(Tag tag) {
  switch (tag) {
    case Tag::kEngine:
      return 1;
    case Tag::kMilliseconds:
    case Tag::kCode:
    case Tag::kToolkitMajor:
    case Tag::kToolkitMinor:
      return 4;
    case Tag::kMemoryLimit:
      return 8;
    case Tag::kPath:
    case Tag::kScratch:
    case Tag::kKeyText:
    case Tag::kWords:
    case Tag::kImagePath:
    case Tag::kImageId:
    case Tag::kTarget:
    case Tag::kArch:
    case Tag::kSourceName:
    case Tag::kOption:
    case Tag::kMessage:
    case Tag::kNameExpression:
    case Tag::kLoweredName:
      return kMaxNameBytes;
    case Tag::kSourceBytes:
    case Tag::kBinary:
    case Tag::kLog:
    case Tag::kDetail:
      return kMaxBodyBytes;
  }
  return 0;
}

template <class Unsigned>
std::string little_endian(Unsigned value) {
  std::string bytes;
  for (std::size_t i = 0; i < sizeof value; ++i) {
    bytes.push_back(static_cast<char>((static_cast<std::uint64_t>(value) >> (8 * i)) & 0xff));
  }
  return bytes;
}

std::uint64_t from_little_endian(std::string_view bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = bytes.size(); i-- > 0;) {
    value = (value << 8) | static_cast<std::uint8_t>(bytes[i]);
  }
  return value;
}

Error damaged(std::string message) {
  return Error{ErrorCode::kDamaged, "worker protocol: " + std::move(message), ""};
}

std::string tag_words(Tag tag) { return "field " + std::to_string(static_cast<unsigned>(tag)); }

class Writer {
 public:
  explicit Writer(Verb verb) { body_.push_back(static_cast<char>(verb)); }

  Writer& add(Tag tag, std::string_view bytes) {
    if (bytes.size() > bound_of(tag)) {
      overflow(tag_words(tag) + " has " + std::to_string(bytes.size()) + " bytes, at most " +
               std::to_string(bound_of(tag)) + " fit");
      return *this;
    }
    if (++fields_ > kMaxFields) {
      overflow("more than " + std::to_string(kMaxFields) + " fields");
      return *this;
    }
    body_.push_back(static_cast<char>(tag));
    body_ += little_endian(static_cast<std::uint32_t>(bytes.size()));
    body_ += bytes;
    return *this;
  }
  Writer& add(Tag tag, const std::vector<std::string>& values) {
    for (const std::string& value : values) add(tag, value);
    return *this;
  }

  Result<std::string> frame() {
    if (body_.size() > kMaxBodyBytes) {
      overflow("a body of " + std::to_string(body_.size()) + " bytes, at most " +
               std::to_string(kMaxBodyBytes) + " fit");
    }
    if (!overflow_.empty()) {
      return Error{ErrorCode::kLimitExceeded, "worker protocol: " + overflow_, "",
                   Reason::kTooLong};
    }
    return std::string(kMagic) + little_endian(static_cast<std::uint32_t>(body_.size())) + body_;
  }

 private:
  void overflow(std::string what) {
    if (overflow_.empty()) overflow_ = std::move(what);
  }

  std::string body_;
  std::size_t fields_ = 0;
  std::string overflow_;
};

// The fields of a body, handed out by tag; what nobody took is an error at the end.
class Fields {
 public:
  static Result<Fields> parse(std::string_view body) {
    Fields fields;
    while (!body.empty()) {
      if (body.size() < 5) return damaged("a field's header is cut off");
      const auto tag = static_cast<Tag>(body[0]);
      const std::uint64_t length = from_little_endian(body.substr(1, 4));
      body.remove_prefix(5);
      if (bound_of(tag) == 0) return damaged(tag_words(tag) + " is unknown");
      if (length > bound_of(tag)) return damaged(tag_words(tag) + " is over its bound");
      if (length > body.size()) return damaged(tag_words(tag) + " is cut off");
      if (fields.all_.size() == kMaxFields) return damaged("too many fields");
      fields.all_.push_back({tag, body.substr(0, length)});
      body.remove_prefix(length);
    }
    return fields;
  }

  std::string text(Tag tag) { return std::string(one(tag)); }
  std::uint64_t number(Tag tag) {
    const std::string_view bytes = one(tag);
    if (bytes.size() != bound_of(tag)) fault(tag_words(tag) + " has another width");
    return from_little_endian(bytes);
  }
  std::vector<std::string> list(Tag tag) {
    std::vector<std::string> values;
    for (Field& field : all_) {
      if (field.tag == tag) {
        values.emplace_back(field.bytes);
        ++taken_;
      }
    }
    return values;
  }
  // Pairs of fields, each a `first` with its `second` after it.
  template <class Pair>
  std::vector<Pair> pairs(Tag first, Tag second) {
    std::vector<Pair> pairs;
    bool open = false;
    for (const Field& field : all_) {
      if (field.tag != first && field.tag != second) continue;
      if (open != (field.tag == second)) {
        fault(tag_words(first) + " and " + tag_words(second) + " do not pair up");
        return {};
      }
      ++taken_;
      open = !open;
      if (open) {
        pairs.push_back({std::string(field.bytes), ""});
      } else {
        auto& [key, value] = pairs.back();
        value = field.bytes;
      }
    }
    if (open) fault(tag_words(first) + " lacks its " + tag_words(second));
    return pairs;
  }

  void fault(std::string what) {
    if (fault_.empty()) fault_ = std::move(what);
  }
  Result<Message> finish(Message message) {
    if (taken_ < all_.size()) fault("a field that the message does not have");
    if (!fault_.empty()) return damaged(fault_);
    return message;
  }

 private:
  struct Field {
    Tag tag;
    std::string_view bytes;
  };

  std::string_view one(Tag tag) {
    std::optional<std::string_view> found;
    for (const Field& field : all_) {
      if (field.tag != tag) continue;
      if (found) fault(tag_words(tag) + " stands twice");
      found = field.bytes;
      ++taken_;
    }
    if (!found) fault(tag_words(tag) + " is missing");
    return found.value_or(std::string_view());
  }

  std::vector<Field> all_;
  std::size_t taken_ = 0;
  std::string fault_;
};

struct Encoder {
  Result<std::string> operator()(const OpenRequest& request) const {
    return Writer(Verb::kOpen)
        .add(Tag::kEngine, little_endian(static_cast<std::uint8_t>(request.engine)))
        .add(Tag::kPath, request.path)
        .add(Tag::kMemoryLimit, little_endian(request.memory_limit_bytes))
        .add(Tag::kScratch, request.scratch)
        .frame();
  }
  Result<std::string> operator()(const CompileRequest& request) const {
    Writer writer(Verb::kCompile);
    writer.add(Tag::kArch, request.arch);
    for (const Source& source : request.sources) {
      writer.add(Tag::kSourceName, source.name).add(Tag::kSourceBytes, source.bytes);
    }
    return writer.add(Tag::kOption, request.options)
        .add(Tag::kNameExpression, request.name_expressions)
        .frame();
  }
  Result<std::string> operator()(const Opened& opened) const {
    Writer writer(Verb::kOpened);
    writer.add(Tag::kKeyText, opened.key_text).add(Tag::kWords, opened.words);
    for (const Image& image : opened.images) {
      writer.add(Tag::kImagePath, image.path).add(Tag::kImageId, image.build_id);
    }
    return writer.add(Tag::kTarget, opened.targets)
        .add(Tag::kToolkitMajor, little_endian(opened.toolkit.major))
        .add(Tag::kToolkitMinor, little_endian(opened.toolkit.minor))
        .frame();
  }
  Result<std::string> operator()(const Compiled& compiled) const {
    return Writer(Verb::kCompiled)
        .add(Tag::kBinary, compiled.binary)
        .add(Tag::kLog, compiled.log)
        .add(Tag::kMilliseconds, little_endian(compiled.compile_ms))
        .add(Tag::kLoweredName, compiled.lowered_names)
        .frame();
  }
  Result<std::string> operator()(const Failed& failed) const {
    return Writer(Verb::kFailed)
        .add(Tag::kCode, little_endian(static_cast<std::uint32_t>(failed.code)))
        .add(Tag::kMessage, std::string_view(failed.message).substr(0, kMaxNameBytes))
        .add(Tag::kDetail, failed.detail)
        .frame();
  }
};

}  // namespace

Result<std::string> encode(const Message& message) { return std::visit(Encoder{}, message); }

Result<std::size_t> body_bytes(std::string_view header) {
  if (header.size() != kHeaderBytes || header.substr(0, 4) != kMagic) {
    return damaged("what arrived is not a frame");
  }
  const std::uint64_t length = from_little_endian(header.substr(4));
  if (length == 0 || length > kMaxBodyBytes) {
    return damaged("a frame of " + std::to_string(length) + " bytes is out of bounds");
  }
  return static_cast<std::size_t>(length);
}

Result<Message> decode(std::string_view body) {
  if (body.empty()) return damaged("an empty body");
  auto parsed = Fields::parse(body.substr(1));
  if (!parsed) return std::move(parsed).error();
  Fields& fields = *parsed;
  switch (static_cast<Verb>(body[0])) {
    case Verb::kOpen: {
      OpenRequest request;
      const std::uint64_t engine = fields.number(Tag::kEngine);
      if (engine > static_cast<std::uint64_t>(Engine::kHost)) fields.fault("an unknown compiler");
      request.engine = static_cast<Engine>(engine);
      request.path = fields.text(Tag::kPath);
      request.memory_limit_bytes = fields.number(Tag::kMemoryLimit);
      request.scratch = fields.text(Tag::kScratch);
      return fields.finish(std::move(request));
    }
    case Verb::kCompile: {
      CompileRequest request;
      request.arch = fields.text(Tag::kArch);
      request.sources = fields.pairs<Source>(Tag::kSourceName, Tag::kSourceBytes);
      request.options = fields.list(Tag::kOption);
      request.name_expressions = fields.list(Tag::kNameExpression);
      if (request.sources.empty()) fields.fault("a compile without a source");
      return fields.finish(std::move(request));
    }
    case Verb::kOpened: {
      Opened opened;
      opened.key_text = fields.text(Tag::kKeyText);
      opened.words = fields.text(Tag::kWords);
      opened.images = fields.pairs<Image>(Tag::kImagePath, Tag::kImageId);
      opened.targets = fields.list(Tag::kTarget);
      opened.toolkit.major = static_cast<std::uint32_t>(fields.number(Tag::kToolkitMajor));
      opened.toolkit.minor = static_cast<std::uint32_t>(fields.number(Tag::kToolkitMinor));
      if (opened.key_text.empty()) fields.fault("a compiler without an identity");
      if (opened.images.empty()) fields.fault("a compiler without a file");
      return fields.finish(std::move(opened));
    }
    case Verb::kCompiled: {
      Compiled compiled;
      compiled.binary = fields.text(Tag::kBinary);
      compiled.log = fields.text(Tag::kLog);
      compiled.compile_ms = static_cast<std::uint32_t>(fields.number(Tag::kMilliseconds));
      compiled.lowered_names = fields.list(Tag::kLoweredName);
      return fields.finish(std::move(compiled));
    }
    case Verb::kFailed: {
      Failed failed;
      const std::uint64_t code = fields.number(Tag::kCode);
      if (code == 0 || code > static_cast<std::uint64_t>(ErrorCode::kInternal)) {
        fields.fault("an unknown error code");
      }
      failed.code = static_cast<ErrorCode>(code);
      failed.message = fields.text(Tag::kMessage);
      failed.detail = fields.text(Tag::kDetail);
      return fields.finish(std::move(failed));
    }
  }
  return damaged("an unknown verb");
}

}  // namespace broach::specializer::rtc
