#include "tools/contract/window_rows/inputs.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <numeric>
#include <span>
#include <string>
#include <utility>

#include "tools/contract/harness/draws.hpp"
#include "tools/contract/harness/number.hpp"

namespace broach::contract::window_rows {
namespace {

constexpr std::uint64_t kQuery = 1, kKey = 2, kValue = 3, kPlant = 4, kShuffle = 5, kSink = 6;
constexpr int kRowsAPlant = 3;

std::uint64_t name_of_vector(std::uint64_t seed, std::uint64_t kind, std::int32_t stream,
                             std::int32_t position, std::int32_t head) noexcept {
  std::uint64_t name = mixed(seed * 8 + kind);
  name = mixed(name ^ static_cast<std::uint32_t>(stream));
  name = mixed(name ^ static_cast<std::uint32_t>(position));
  return mixed(name ^ static_cast<std::uint32_t>(head));
}

double key_rms(std::uint64_t name) noexcept { return 0.06 + 0.07 * uniform(mixed(name + 77)); }
double query_rms(std::uint64_t name) noexcept { return 0.95 + 0.10 * uniform(mixed(name + 77)); }

std::string words(const RowAt& row) {
  return "stream " + std::to_string(row.stream) + " at position " + std::to_string(row.position);
}

// Sizes, strides and the page table; the caches are allocated but not filled.
class Maker {
 public:
  explicit Maker(const Recipe& recipe) : recipe_(recipe) {}

  Result<Problem> make() {
    if (auto laid = lay_out(); !laid) return laid.error();
    fill_unseen();
    fill_queries();
    fill_streams();
    plant();
    if (problem_.shape.sinks == Switch::kOn) fill_sinks();
    return std::move(problem_);
  }

 private:
  Result<void> lay_out();
  Result<void> check_rings();
  Result<void> lay_out_sequences();
  void shuffle_pages();
  void fill_unseen();
  void fill_queries();
  void fill_streams();
  void plant();
  void fill_sinks();

  std::int32_t slot_of(std::int32_t stream) const {
    return recipe_.slot_of_stream.empty()
               ? stream
               : recipe_.slot_of_stream[static_cast<std::size_t>(stream)];
  }
  std::span<std::uint16_t> vector_at(std::vector<std::uint16_t>& in, std::int64_t at) const {
    return {in.data() + at, recipe_.shape.head_dim};
  }

  const Recipe& recipe_;
  Problem problem_;
  std::map<std::int32_t, std::int32_t> newest_;  // By stream: the greatest position seen.
};

Result<void> Maker::check_rings() {
  const Problem& p = problem_;
  for (const RowAt& at : recipe_.rows) {
    std::int32_t& newest = newest_[at.stream];
    newest = std::max(newest, at.last_key());
  }
  if (p.shape.kv_layout.kind != KvLayoutKind::kRing) return {};
  const auto ring = static_cast<std::int32_t>(p.shape.kv_layout.length);
  for (std::int32_t row = 0; row < p.rows; ++row) {
    const RowAt& at = recipe_.rows[static_cast<std::size_t>(row)];
    if (newest_.at(at.stream) - p.first_key(row) < ring) continue;
    return Error{ErrorCode::kInvalidArgument,
                 words(at) + " sees keys that a ring of " + std::to_string(ring) +
                     " no longer holds at position " + std::to_string(newest_.at(at.stream)),
                 ""};
  }
  return {};
}

Result<void> Maker::lay_out_sequences() {
  Problem& p = problem_;
  p.passes_hi = recipe_.passes_hi;
  if (p.shape.form == Form::kDecode) return {};
  p.offsets.push_back(0);
  for (const std::int32_t rows : recipe_.sequence_rows) {
    p.offsets.push_back(p.offsets.back() + rows);
  }
  if (p.offsets.back() == p.rows && p.rows > 0) return {};
  return Error{ErrorCode::kInvalidArgument,
               "a prefill of " + std::to_string(p.rows) + " rows has sequences of " +
                   std::to_string(p.offsets.back()) + " rows in all",
               ""};
}

Result<void> Maker::lay_out() {
  Problem& p = problem_;
  const WindowRowsShape& shape = recipe_.shape;
  p.shape = shape;
  p.rows = static_cast<std::int32_t>(recipe_.rows.size());
  p.kv_heads = recipe_.kv_heads;
  p.scale = recipe_.scale;
  p.softcap = recipe_.softcap;
  std::int32_t greatest_slot = 0;
  for (const RowAt& row : recipe_.rows) {
    p.positions.push_back(row.position);
    p.slots.push_back(slot_of(row.stream));
    p.last_keys.push_back(row.last_key());
    p.max_keys = std::max(p.max_keys, row.last_key() + 1);
    greatest_slot = std::max(greatest_slot, p.slots.back());
  }
  p.slot_count = std::max(recipe_.slot_count, greatest_slot + 1);
  if (auto fits = check_rings(); !fits) return fits;
  if (auto made = lay_out_sequences(); !made) return made;

  const auto unit = static_cast<std::int32_t>(shape.kv_layout.length);
  std::int32_t blocks = p.slot_count;  // Slots, or pages of all slots.
  std::int32_t block_length = unit;
  switch (shape.kv_layout.kind) {
    case KvLayoutKind::kRing:
      p.length = unit;
      break;
    case KvLayoutKind::kLinear:
      p.length = std::max(recipe_.length, p.max_keys);
      block_length = p.length;
      break;
    case KvLayoutKind::kPaged: {
      const std::int32_t pages = (std::max(recipe_.length, p.max_keys) + unit - 1) / unit;
      p.length = pages * unit;
      p.page_table_stride = pages;
      blocks = p.slot_count * pages;
      break;
    }
  }
  if (recipe_.length != 0 && recipe_.length < p.max_keys &&
      shape.kv_layout.kind != KvLayoutKind::kRing) {
    return Error{ErrorCode::kInvalidArgument,
                 "length " + std::to_string(recipe_.length) + " is short of position " +
                     std::to_string(p.max_keys - 1),
                 ""};
  }

  const std::int64_t padded = p.head_dim() + recipe_.padding;
  p.q_head_stride = p.out_head_stride = padded;
  p.q_row_stride = p.out_row_stride = padded * p.heads() + recipe_.padding;
  if (recipe_.order == CacheOrder::kPositionsFirst) {
    p.k_head_stride = padded;
    p.k_position_stride = padded * p.kv_heads;
    p.k_slot_stride = p.k_position_stride * block_length + recipe_.padding;
  } else {
    p.k_position_stride = padded;
    p.k_head_stride = padded * block_length + recipe_.padding;
    p.k_slot_stride = p.k_head_stride * p.kv_heads;
  }
  p.v_head_stride = p.k_head_stride;
  p.v_position_stride = p.k_position_stride;
  p.v_slot_stride = p.k_slot_stride;
  p.q.resize(static_cast<std::size_t>(p.q_row_stride * p.rows));
  p.k.resize(static_cast<std::size_t>(p.k_slot_stride * blocks));
  p.v.resize(p.k.size());
  if (shape.kv_layout.kind == KvLayoutKind::kPaged) shuffle_pages();
  return {};
}

// Fisher and Yates over all pages of all slots, so that neighbours in a sequence are none in
// memory.
void Maker::shuffle_pages() {
  std::vector<std::int32_t>& table = problem_.page_table;
  table.resize(static_cast<std::size_t>(problem_.slot_count * problem_.page_table_stride));
  for (std::size_t i = 0; i < table.size(); ++i) table[i] = static_cast<std::int32_t>(i);
  for (std::size_t i = table.size(); i > 1; --i) {
    const std::uint64_t draw_of = mixed(mixed(recipe_.seed * 8 + kShuffle) + i);
    std::swap(table[i - 1], table[draw_of % i]);
  }
}

void Maker::fill_unseen() {
  Problem& p = problem_;
  const std::uint16_t nan = round_to(std::nan(""), p.shape.dtype);
  std::fill(p.q.begin(), p.q.end(), nan);
  if (recipe_.unseen == Unseen::kNan) {
    std::fill(p.k.begin(), p.k.end(), nan);
    std::fill(p.v.begin(), p.v.end(), nan);
    return;
  }
  const std::uint64_t name = mixed(recipe_.seed * 8);
  for (std::size_t i = 0; i < p.k.size(); ++i) {
    p.k[i] = round_to(0.1 * bell(mixed(name + 2 * i)), p.shape.dtype);
    p.v[i] = round_to(bell(mixed(name + 2 * i + 1)), p.shape.dtype);
  }
}

void Maker::fill_queries() {
  for (std::int32_t row = 0; row < problem_.rows; ++row) {
    const RowAt& at = recipe_.rows[static_cast<std::size_t>(row)];
    for (std::int32_t head = 0; head < problem_.heads(); ++head) {
      const std::uint64_t name = name_of_vector(recipe_.seed, kQuery, at.stream, at.position, head);
      draw_vector(vector_at(problem_.q, problem_.q_at(row, head)), name, query_rms(name),
                  problem_.shape.dtype);
    }
  }
}

// Rows by stream and position, so that positions that several rows see are drawn once.
void Maker::fill_streams() {
  Problem& p = problem_;
  std::vector<std::int32_t> order(recipe_.rows.size());
  std::iota(order.begin(), order.end(), 0);
  const auto at = [this](std::int32_t row) { return recipe_.rows[static_cast<std::size_t>(row)]; };
  std::sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) {
    return std::pair(at(a).stream, at(a).position) < std::pair(at(b).stream, at(b).position);
  });
  std::int32_t stream = -1;
  std::int32_t next = 0;
  for (const std::int32_t row : order) {
    if (at(row).stream != stream) next = 0;
    stream = at(row).stream;
    for (next = std::max(next, p.first_key(row)); next <= p.last_key(row); ++next) {
      for (std::int32_t head = 0; head < p.kv_heads; ++head) {
        const std::uint64_t key = name_of_vector(recipe_.seed, kKey, stream, next, head);
        draw_vector(vector_at(p.k, p.k_at(row, next, head)), key, key_rms(key), p.shape.dtype);
        const std::uint64_t value = name_of_vector(recipe_.seed, kValue, stream, next, head);
        draw_vector(vector_at(p.v, p.v_at(row, next, head)), value, 1.0, p.shape.dtype);
      }
    }
  }
}

void Maker::plant() {
  Problem& p = problem_;
  const auto ratio = static_cast<std::int32_t>(p.shape.gqa_ratio);
  for (std::int32_t row = 0; row < p.rows; row += kRowsAPlant) {
    const RowAt& at = recipe_.rows[static_cast<std::size_t>(row)];
    for (std::int32_t kv_head = 0; kv_head < p.kv_heads; ++kv_head) {
      const std::uint64_t name =
          name_of_vector(recipe_.seed, kPlant, at.stream, at.position, kv_head);
      const std::int32_t first = p.first_key(row);
      const auto keys = static_cast<std::uint64_t>(at.last_key() - first + 1);
      const std::int32_t position = first + static_cast<std::int32_t>(mixed(name) % keys);
      const std::int32_t head =
          kv_head * ratio +
          static_cast<std::int32_t>(mixed(name + 1) % static_cast<std::uint64_t>(ratio));
      const std::uint64_t query =
          name_of_vector(recipe_.seed, kQuery, at.stream, at.position, head);
      const std::uint64_t key = name_of_vector(recipe_.seed, kKey, at.stream, position, kv_head);
      draw_vector(vector_at(p.k, p.k_at(row, position, kv_head)), query, key_rms(key),
                  p.shape.dtype);
    }
  }
}

void Maker::fill_sinks() {
  for (std::int32_t head = 0; head < problem_.heads(); ++head) {
    const std::uint64_t name = name_of_vector(recipe_.seed, kSink, 0, 0, head);
    problem_.sinks.push_back(static_cast<float>(4.0 * uniform(name) - 1.0));
  }
}

}  // namespace

Result<Problem> make_problem(const Recipe& recipe) { return Maker(recipe).make(); }

}  // namespace broach::contract::window_rows
