#include "cache/object.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "cache/limit_fields.hpp"
#include "cache/wire.hpp"

namespace broach::cache {
namespace {

// The line ends in the magic are lost when a tool mistakes the file for text.
constexpr std::string_view kMagic{"BROACH\r\n", 8};
constexpr std::size_t kMetadataDigestOffset = 32;
constexpr std::size_t kMetadataDigestEnd = 48;

constexpr std::string_view kKeySection = "KEYS";
constexpr std::string_view kDescriptionSection = "DESC";
constexpr std::string_view kProvenanceSection = "PROV";
constexpr std::string_view kLimitsSection = "LIMS";
constexpr std::string_view kPayloadSection = "DATA";

// A reader that does not know a section with this flag must not use the object.
constexpr std::uint32_t kRequired = 1;

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::string_view text_of(const Digest& digest) {
  return {reinterpret_cast<const char*>(digest.data()), digest.size()};
}

Error damaged(std::string what) { return Error{ErrorCode::kDamaged, std::move(what), ""}; }

void append_section(std::string& out, std::string_view tag, std::string_view body) {
  out.append(tag);
  append_u32(out, kRequired);
  append_u64(out, body.size());
  out.append(body);
}

std::string encode_fields(const Description& description) {
  std::string out;
  append_field(out, "family", description.family);
  append_field(out, "target", description.target);
  append_field(out, "shape", description.shape_json);
  append_field(out, "source_hash", description.source_hash);
  append_field(out, "compiler", description.compiler);
  append_field(out, "kind", description.kind);
  return out;
}

std::string encode_fields(const Provenance& provenance) {
  std::string out;
  append_field(out, "created_unix_ms", provenance.created_unix_ms);
  append_field(out, "compile_ms", std::int64_t{provenance.compile_ms});
  append_field(out, "broach_version", provenance.broach_version);
  append_field(out, "toolkit", provenance.toolkit);
  append_field(out, "least_driver", provenance.least_driver);
  append_field(out, "log", provenance.log);
  return out;
}

std::string encode_fields(const std::vector<LaunchLimits>& limits) {
  std::string out;
  for (const LaunchLimits& row : limits) {
    append_field(out, "function", row.function);
    append_field(out, "source", row.source);
    for (const LimitField& field : kLimitFields) {
      if (const auto& value = row.*field.member)
        append_field(out, field.name, std::int64_t{*value});
    }
    if (row.parameter_bytes) {
      append_field(out, kParameterField, parameter_text(*row.parameter_bytes));
    }
  }
  return out;
}

// Numbers come from bytes that others could have written: out of range is damage, not a wrap.
template <class Number>
bool read_number(std::string_view digits, Number& out) {
  const auto value = parse_number(digits);
  if (!value || !std::in_range<Number>(*value)) return false;
  out = static_cast<Number>(*value);
  return true;
}

bool read_field(const KeyField& field, Description& out) {
  if (field.label == "family") out.family = field.value;
  if (field.label == "target") out.target = field.value;
  if (field.label == "shape") out.shape_json = field.value;
  if (field.label == "source_hash") out.source_hash = field.value;
  if (field.label == "compiler") out.compiler = field.value;
  if (field.label == "kind") out.kind = field.value;
  return true;
}

bool read_field(const KeyField& field, Provenance& out) {
  if (field.label == "created_unix_ms") return read_number(field.value, out.created_unix_ms);
  if (field.label == "compile_ms") return read_number(field.value, out.compile_ms);
  if (field.label == "broach_version") out.broach_version = field.value;
  if (field.label == "toolkit") out.toolkit = field.value;
  if (field.label == "least_driver") out.least_driver = field.value;
  if (field.label == "log") out.log = field.value;
  return true;
}

bool read_field(const KeyField& field, std::vector<LaunchLimits>& out) {
  if (field.label == "function") {
    out.emplace_back().function = field.value;
    return true;
  }
  if (out.empty()) return false;
  if (field.label == "source") out.back().source = field.value;
  if (field.label == kParameterField) {
    out.back().parameter_bytes = parameters_of(field.value);
    return out.back().parameter_bytes.has_value();
  }
  for (const LimitField& known : kLimitFields) {
    if (field.label != known.name) continue;
    std::uint32_t value = 0;
    if (!read_number(field.value, value)) return false;
    out.back().*known.member = value;
  }
  return true;
}

// A field whose label is not known is left alone, so that later versions can add some.
template <class Part>
Result<void> read_fields(std::string_view section, std::string_view body, Part& out) {
  const auto fields = fields_of(body);
  if (!fields) return damaged(std::string(section) + " section: " + fields.error().message);
  for (const KeyField& field : *fields) {
    if (!read_field(field, out)) {
      return damaged(std::string(section) + " section: field \"" + field.label +
                     "\" has a value that does not fit");
    }
  }
  return {};
}

Result<void> read_section(std::string_view tag, std::uint32_t flags, std::string_view body,
                          Object& out) {
  if (tag == kKeySection) {
    out.key.stream = body;
    return {};
  }
  if (tag == kDescriptionSection) return read_fields(tag, body, out.description);
  if (tag == kProvenanceSection) return read_fields(tag, body, out.provenance);
  if (tag == kLimitsSection) return read_fields(tag, body, out.limits);
  if ((flags & kRequired) == 0) return {};
  return Error{ErrorCode::kUnsupported,
               "the object has a section \"" + std::string(tag) + "\" that this version must know",
               "", Reason::kNewerFormat};
}

// Sections fill the metadata exactly and end with the payload's own head.
Result<void> read_sections(std::string_view metadata, std::uint64_t payload_bytes, Object& out) {
  Reader reader(metadata);
  std::vector<std::string_view> seen;
  while (!reader.at_end()) {
    const std::size_t start = reader.offset();
    const auto tag = reader.bytes(4);
    const auto flags = reader.u32();
    const auto length = reader.u64();
    if (!tag || !flags || !length) {
      return damaged("the section at metadata byte " + std::to_string(start) + " is cut short");
    }
    if (std::find(seen.begin(), seen.end(), *tag) != seen.end()) {
      return damaged("section " + std::string(*tag) + " occurs twice");
    }
    seen.push_back(*tag);
    if (*tag == kPayloadSection) {
      if (!reader.at_end()) return damaged("the payload is not the last section");
      if (*length != payload_bytes) {
        return damaged("the payload says " + std::to_string(*length) + " bytes and has " +
                       std::to_string(payload_bytes));
      }
      break;
    }
    const auto body = reader.bytes(*length);
    if (!body) {
      return damaged("section " + std::string(*tag) + " says " + std::to_string(*length) +
                     " bytes, more than there are");
    }
    if (auto read = read_section(*tag, *flags, *body, out); !read) return read;
  }
  for (const std::string_view needed :
       {kKeySection, kDescriptionSection, kProvenanceSection, kLimitsSection, kPayloadSection}) {
    if (std::find(seen.begin(), seen.end(), needed) == seen.end()) {
      return damaged("section " + std::string(needed) + " is missing");
    }
  }
  return {};
}

Digest take_digest(Reader& reader) {
  Digest digest{};
  if (const auto bytes = reader.bytes(digest.size())) {
    std::transform(bytes->begin(), bytes->end(), digest.begin(),
                   [](char byte) { return static_cast<std::uint8_t>(byte); });
  }
  return digest;
}

}  // namespace

std::vector<std::byte> encode(const Object& object) {
  const std::string_view payload = text_of(object.payload);
  std::string sections;
  append_section(sections, kKeySection, object.key.stream);
  append_section(sections, kDescriptionSection, encode_fields(object.description));
  append_section(sections, kProvenanceSection, encode_fields(object.provenance));
  append_section(sections, kLimitsSection, encode_fields(object.limits));
  sections.append(kPayloadSection);
  append_u32(sections, kRequired);
  append_u64(sections, payload.size());

  std::string head(kMagic);
  append_u32(head, kObjectFormatVersion);
  append_u32(head, ~kObjectFormatVersion);
  append_u64(head, kObjectHeaderBytes + sections.size() + payload.size());
  append_u64(head, kObjectHeaderBytes + sections.size());
  std::string rest;
  rest.append(text_of(digest_of(payload)));
  rest.append(text_of(object.key.key.bytes));
  rest.append(sections);
  head.append(text_of(digest_of(head, rest)));
  head.append(rest);

  std::vector<std::byte> out(head.size() + payload.size());
  const auto as_byte = [](char c) { return static_cast<std::byte>(c); };
  std::transform(head.begin(), head.end(), out.begin(), as_byte);
  std::copy(object.payload.begin(), object.payload.end(),
            out.begin() + static_cast<std::ptrdiff_t>(head.size()));
  return out;
}

Result<ObjectHeader> decode_header(std::span<const std::byte> bytes) {
  if (bytes.size() < kObjectHeaderBytes) {
    return damaged("an object has at least " + std::to_string(kObjectHeaderBytes) +
                   " bytes; this file has " + std::to_string(bytes.size()));
  }
  Reader reader(text_of(bytes.first(kObjectHeaderBytes)));
  if (reader.bytes(kMagic.size()) != kMagic) return damaged("the magic number is not an object's");
  const std::uint32_t version = reader.u32().value_or(0);
  // The complement tells a version that was written from one that rotted.
  if (reader.u32() != ~version) return damaged("the format version is garbled");
  if (version != kObjectFormatVersion) {
    return Error{ErrorCode::kUnsupported,
                 "the object has format version " + std::to_string(version) +
                     "; this build reads version " + std::to_string(kObjectFormatVersion),
                 "", Reason::kNewerFormat};
  }
  ObjectHeader header;
  header.file_bytes = reader.u64().value_or(0);
  header.payload_offset = reader.u64().value_or(0);
  header.metadata_digest = take_digest(reader);
  header.payload_digest = take_digest(reader);
  header.key.bytes = take_digest(reader);
  if (header.file_bytes > kMaxObjectBytes || header.payload_offset > header.file_bytes ||
      header.payload_offset < kObjectHeaderBytes) {
    return damaged("the header's lengths do not fit together");
  }
  return header;
}

Result<Object> decode_head(std::span<const std::byte> head) {
  const auto header = decode_header(head);
  if (!header) return header.error();
  if (header->payload_offset != head.size()) {
    return damaged("the metadata has " + std::to_string(head.size()) + " bytes; the header says " +
                   std::to_string(header->payload_offset));
  }
  const std::string_view text = text_of(head);
  const Digest digest =
      digest_of(text.substr(0, kMetadataDigestOffset), text.substr(kMetadataDigestEnd));
  if (digest != header->metadata_digest) return damaged("the metadata's digest does not match");

  Object object;
  object.key.key = header->key;
  auto read = read_sections(text.substr(kObjectHeaderBytes),
                            header->file_bytes - header->payload_offset, object);
  if (!read) return read.error();
  if (key_of_stream(object.key.stream) != object.key.key) {
    return damaged("the key's fields do not have the key " + object.key.key.hex());
  }
  return object;
}

Result<Object> decode(std::span<const std::byte> bytes) {
  const auto header = decode_header(bytes);
  if (!header) return header.error();
  if (header->file_bytes != bytes.size()) {
    return damaged("the file has " + std::to_string(bytes.size()) + " bytes; its header says " +
                   std::to_string(header->file_bytes));
  }
  const auto offset = static_cast<std::size_t>(header->payload_offset);
  auto object = decode_head(bytes.first(offset));
  if (!object) return object;
  const auto payload = bytes.subspan(offset);
  if (digest_of(text_of(payload)) != header->payload_digest) {
    return damaged("the payload's digest does not match");
  }
  object->payload.assign(payload.begin(), payload.end());
  return object;
}

}  // namespace broach::cache
