#include "runtime/c_abi_structs.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <sstream>
#include <string>
#include <type_traits>

namespace broach::runtime {
namespace {

/// Copies a caller's structure of `size` bytes over a zeroed one of this library's size.
///
/// `least` is the size of the structure in the first header that had it.
template <class Struct>
Result<Struct> sized_copy(const Struct* from, std::size_t least, const char* name) {
  static_assert(std::is_trivially_copyable_v<Struct>);
  if (from == nullptr) {
    return Error{ErrorCode::kInvalidArgument, fmt::format("{} is NULL", name), {}};
  }
  std::size_t size = 0;
  std::memcpy(&size, from, sizeof size);
  if (size < least) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("{}.size is {}; set it to sizeof({}), {} in this library", name, size,
                             name, sizeof(Struct)),
                 {}};
  }
  const auto* bytes = reinterpret_cast<const unsigned char*>(from);
  for (std::size_t at = sizeof(Struct); at < size; ++at) {
    if (bytes[at] != 0) {
      return Error{ErrorCode::kUnsupported,
                   fmt::format("{} sets a field at byte {} that this library does not know; it is "
                               "older than the header",
                               name, at),
                   {}};
    }
  }
  Struct copy{};
  std::memcpy(&copy, from, std::min(size, sizeof(Struct)));
  return copy;
}

/// Reads an enumerator or says which field is outside 0..last.
template <class Enum>
bool read(std::uint32_t value, Enum last, const char* name, Enum& to, Error& error) {
  if (value <= static_cast<std::uint32_t>(last)) {
    to = static_cast<Enum>(value);
    return true;
  }
  error = {ErrorCode::kInvalidArgument,
           fmt::format("broach_window_rows_shape.{} is {}; it must be 0 to {}", name, value,
                       static_cast<std::uint32_t>(last)),
           {}};
  return false;
}

void set(std::string& field, const char* text) {
  if (text != nullptr) field = text;
}

Result<void> set(std::vector<std::string>& field, const char* const* texts, std::size_t count,
                 const char* name) {
  if (count == 0) return {};
  field.clear();
  for (std::size_t i = 0; i < count; ++i) {
    if (texts == nullptr || texts[i] == nullptr) {
      return Error{ErrorCode::kInvalidArgument,
                   fmt::format("broach_runtime_options.{}[{}] is NULL", name, i),
                   {}};
    }
    field.emplace_back(texts[i]);
  }
  return {};
}

Result<void> set_remotes(Options& to, const char* urls, const char* secret) {
  if (urls != nullptr) {
    to.remotes.clear();
    std::istringstream words(urls);
    for (std::string url; words >> url;) to.remotes.emplace_back().url = url;
  }
  if (secret == nullptr) return {};
  if (to.remotes.size() != 1) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("broach_runtime_options.remote_secret is one remote's; {} are named: "
                             "put each secret into its URL",
                             to.remotes.size()),
                 {}};
  }
  to.remotes.front().secret = secret;
  to.remotes.front().secret_file.clear();
  return {};
}

static_assert(static_cast<int>(Dtype::kF16) == BROACH_F16);
static_assert(static_cast<int>(Switch::kOn) == BROACH_ON);
static_assert(static_cast<int>(Form::kPrefill) == BROACH_FORM_PREFILL);
static_assert(static_cast<int>(Arith::kChunk256) == BROACH_ARITH_CHUNK256);
static_assert(static_cast<int>(Arith::kTile64) == BROACH_ARITH_TILE64);
static_assert(static_cast<int>(Arith::kMma32) == BROACH_ARITH_MMA32);
static_assert(static_cast<int>(KvLayoutKind::kRing) == BROACH_KV_RING);
static_assert(static_cast<int>(KvLayoutKind::kPaged) == BROACH_KV_PAGED);

// Later headers only added fields.
constexpr std::size_t kFirstOptionsSize =
    offsetof(broach_runtime_options, notice_user) + sizeof(void*);

/// What a decode's and a prefill's arguments have in common; both structures name it alike.
template <class Struct>
DecodeArgs common_from(const Struct& from) {
  DecodeArgs to;
  to.q = from.q;
  to.k = from.k;
  to.v = from.v;
  to.out = from.out;
  to.positions = from.positions;
  to.slots = from.slots;
  to.page_table = from.page_table;
  to.sinks = from.sinks;
  to.q_row_stride = from.q_row_stride;
  to.q_head_stride = from.q_head_stride;
  to.k_slot_stride = from.k_slot_stride;
  to.k_position_stride = from.k_position_stride;
  to.k_head_stride = from.k_head_stride;
  to.v_slot_stride = from.v_slot_stride;
  to.v_position_stride = from.v_position_stride;
  to.v_head_stride = from.v_head_stride;
  to.out_row_stride = from.out_row_stride;
  to.out_head_stride = from.out_head_stride;
  to.page_table_stride = from.page_table_stride;
  to.rows = from.rows;
  to.kv_heads = from.kv_heads;
  to.slot_count = from.slot_count;
  to.length = from.length;
  to.max_keys = from.max_keys;
  to.scale = from.scale;
  to.softcap = from.softcap;
  return to;
}

}  // namespace

Result<Options> options_from(const broach_runtime_options* options) {
  Options to = Options::from_environment();
  if (options == nullptr) return to;
  auto from = sized_copy(options, kFirstOptionsSize, "broach_runtime_options");
  if (!from) return from.error();
  set(to.device, from->device);
  set(to.worker, from->worker);
  switch (from->first_use) {
    case BROACH_FIRST_USE_DEFAULT:
      break;
    case BROACH_FIRST_USE_WAIT:
      to.first_use = FirstUse::kWait;
      break;
    case BROACH_FIRST_USE_BACKGROUND:
      to.first_use = FirstUse::kBackground;
      break;
    case BROACH_FIRST_USE_NEVER:
      to.first_use = FirstUse::kNever;
      break;
    default:
      return Error{ErrorCode::kInvalidArgument,
                   fmt::format("broach_runtime_options.first_use is {}; it must be 0 to {}",
                               from->first_use, static_cast<int>(BROACH_FIRST_USE_NEVER)),
                   {}};
  }
  if (auto ok = set(to.cache_directories, from->cache_directories, from->cache_directory_count,
                    "cache_directories");
      !ok) {
    return ok.error();
  }
  if (auto ok = set(to.read_only_caches, from->read_only_caches, from->read_only_cache_count,
                    "read_only_caches");
      !ok) {
    return ok.error();
  }
  set(to.signing_key, from->signing_key);
  if (auto ok = set_remotes(to, from->remotes, from->remote_secret); !ok) return ok.error();
  if (from->jobs != 0) to.jobs = from->jobs;
  if (from->cache_bytes != 0) to.cache_bytes = from->cache_bytes;
  if (from->cache_objects != 0) to.cache_objects = from->cache_objects;
  if (from->notice != nullptr) {
    to.notice = [notice = from->notice, user = from->notice_user](std::string_view line) {
      notice(user, std::string(line).c_str());
    };
  }
  return to;
}

Result<WindowRowsShape> shape_from(const broach_window_rows_shape* shape) {
  auto from = sized_copy(shape, sizeof(broach_window_rows_shape), "broach_window_rows_shape");
  if (!from) return from.error();
  WindowRowsShape to;
  to.head_dim = from->head_dim;
  to.gqa_ratio = from->gqa_ratio;
  to.window = from->window;
  to.kv_layout.length = from->kv_layout_length;
  Error error;
  const bool ok =
      read(from->kv_layout, KvLayoutKind::kPaged, "kv_layout", to.kv_layout.kind, error) &&
      read(from->dtype, Dtype::kF16, "dtype", to.dtype, error) &&
      read(from->form, Form::kPrefill, "form", to.form, error) &&
      read(from->arith, Arith::kMma32, "arith", to.arith, error) &&
      read(from->p32, Switch::kOn, "p32", to.p32, error) &&
      read(from->softcap, Switch::kOn, "softcap", to.softcap, error) &&
      read(from->sinks, Switch::kOn, "sinks", to.sinks, error) &&
      read(from->checked, Switch::kOn, "checked", to.checked, error);
  if (!ok) return error;
  return to;
}

Result<DecodeArgs> args_from(const broach_window_rows_decode_args* args) {
  auto from =
      sized_copy(args, sizeof(broach_window_rows_decode_args), "broach_window_rows_decode_args");
  if (!from) return from.error();
  if (from->reserved != 0) {
    return Error{
        ErrorCode::kInvalidArgument,
        fmt::format("broach_window_rows_decode_args.reserved is {}; it must be 0: fill the "
                    "structure with zeros first",
                    from->reserved),
        {}};
  }
  DecodeArgs to = common_from(*from);
  to.workspace = from->workspace;
  to.workspace_bytes = from->workspace_bytes;
  return to;
}

Result<PrefillArgs> args_from(const broach_window_rows_prefill_args* args) {
  auto from =
      sized_copy(args, sizeof(broach_window_rows_prefill_args), "broach_window_rows_prefill_args");
  if (!from) return from.error();
  PrefillArgs to;
  to.common = common_from(*from);
  to.offsets = from->offsets;
  to.hi = from->hi;
  to.sequences = from->sequences;
  return to;
}

}  // namespace broach::runtime
