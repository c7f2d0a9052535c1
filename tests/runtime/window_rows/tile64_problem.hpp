#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <numeric>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "broach/window_rows.hpp"
#include "runtime/window_rows/tile64_launch.hpp"
#include "tests/kernel_src/tile64_reference.hpp"
#include "tests/runtime/window_rows/compiled_kernel.hpp"
#include "tests/support/catch.hpp"

namespace broach::test {

/// One stream's keys and values by position, as no layout has cut them: [position][KV head][D].
struct Stream {
  std::vector<std::uint16_t> k, v;
};

/// A row of a decode: which stream it belongs to, and where it stands.
struct DecodeRow {
  int stream = 0;
  int position = 0;
};

/// A decode whose caches are laid out as a shape asks, from streams that every layout shares.
class Tile64Problem {
 public:
  static constexpr int kKvHeads = 2;

  Tile64Problem(const WindowRowsShape& shape, std::vector<DecodeRow> rows, int positions,
                std::uint32_t seed = 1)
      : shape_(shape), rows_(std::move(rows)), positions_(positions) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal;
    const auto fill = [&](std::vector<std::uint16_t>& values, std::size_t count, float rms) {
      values.resize(count);
      for (auto& value : values) value = rounded(rms * normal(random));
    };
    int streams = 0;
    for (const DecodeRow& row : rows_) streams = std::max(streams, row.stream + 1);
    streams_.resize(static_cast<std::size_t>(streams));
    for (Stream& stream : streams_) {
      fill(stream.k, size(positions_) * size(kKvHeads) * dims(), 0.4F);
      fill(stream.v, size(positions_) * size(kKvHeads) * dims(), 1.0F);
    }
    fill(q_, rows_.size() * size(heads()) * dims(), 1.0F);
    sinks_.resize(size(heads()));
    for (float& sink : sinks_) sink = 3.0F * normal(random);
  }

  int heads() const { return kKvHeads * static_cast<int>(shape_.gqa_ratio); }
  std::size_t dims() const { return shape_.head_dim; }
  std::span<std::uint16_t> q(std::size_t row, int head) {
    return std::span(q_).subspan((row * size(heads()) + size(head)) * dims(), dims());
  }
  std::span<std::uint16_t> key(int stream, int position, int kv_head) {
    return at(streams_[size(stream)].k, position, kv_head);
  }
  std::span<std::uint16_t> value(int stream, int position, int kv_head) {
    return at(streams_[size(stream)].v, position, kv_head);
  }
  const std::vector<DecodeRow>& rows() const { return rows_; }
  int first_key(const DecodeRow& row) const {
    if (shape_.window == 0) return 0;
    return std::max(0, row.position - static_cast<int>(shape_.window) + 1);
  }

  /// What a batch of these rows, in this order, leaves: [rows][heads][D]. Slot of a stream is
  /// stream + `slot_shift`; linear slots hold `stretch` times the positions; what no row sees holds
  /// `unseen`.
  std::vector<std::uint16_t> run(const runtime::DecodeLaunch& launch,
                                 const std::vector<std::size_t>& chosen, int slot_shift = 0,
                                 int stretch = 1, std::uint16_t unseen = 0x7FC1,
                                 std::uint8_t poison = 0xFF) const {
    std::vector<std::int32_t> positions, slots, table;
    std::vector<std::uint16_t> q;
    for (const std::size_t row : chosen) {
      positions.push_back(rows_[row].position);
      slots.push_back(rows_[row].stream + slot_shift);
      const auto* const from = q_.data() + row * size(heads()) * dims();
      q.insert(q.end(), from, from + size(heads()) * dims());
    }
    const int slot_count = static_cast<int>(streams_.size()) + slot_shift;
    const auto ring_or_page = static_cast<int>(shape_.kv_layout.length);
    const bool paged = shape_.kv_layout.kind == KvLayoutKind::kPaged;
    const bool ring = shape_.kv_layout.kind == KvLayoutKind::kRing;
    const int pages = paged ? (positions_ + ring_or_page - 1) / ring_or_page : 0;
    const int slot_positions = ring ? ring_or_page : paged ? ring_or_page : positions_ * stretch;
    const int slots_held = paged ? slot_count * pages + 3 : slot_count;
    if (paged) {
      table.resize(size(slots_held));
      std::iota(table.begin(), table.end(), 0);
      std::shuffle(table.begin(), table.end(), std::mt19937(5));
    }
    const std::size_t row_elems = size(kKvHeads) * dims();
    std::vector<std::uint16_t> k(size(slots_held) * size(slot_positions) * row_elems, unseen);
    std::vector<std::uint16_t> v(k.size(), unseen);
    for (const std::size_t row : chosen) {
      const Stream& stream = streams_[size(rows_[row].stream)];
      for (int p = first_key(rows_[row]); p <= rows_[row].position; ++p) {
        const int slot = rows_[row].stream + slot_shift;
        const int holder = paged ? table[size(slot * pages + p / ring_or_page)] : slot;
        const int index = holder * slot_positions + (paged || ring ? p % ring_or_page : p);
        const std::size_t to = size(index) * row_elems;
        std::memcpy(&k[to], &stream.k[size(p) * row_elems], 2 * row_elems);
        std::memcpy(&v[to], &stream.v[size(p) * row_elems], 2 * row_elems);
      }
    }

    std::vector<std::uint16_t> out(q.size());
    std::memset(out.data(), poison, 2 * out.size());
    WindowRowsDecodeArgs args;
    args.attention.q = q.data();
    args.cache.k = k.data();
    args.cache.v = v.data();
    args.attention.out = out.data();
    args.positions = positions.data();
    args.slots = slots.data();
    args.cache.page_table = paged ? table.data() : nullptr;
    args.attention.sinks = shape_.sinks == Switch::kOn ? sinks_.data() : nullptr;
    args.attention.q_head_stride = args.attention.out_head_stride =
        static_cast<std::int64_t>(dims());
    args.attention.q_row_stride = args.attention.out_row_stride =
        static_cast<std::int64_t>(size(heads()) * dims());
    args.cache.k_head_stride = args.cache.v_head_stride = static_cast<std::int64_t>(dims());
    args.cache.k_position_stride = args.cache.v_position_stride =
        static_cast<std::int64_t>(row_elems);
    args.cache.k_slot_stride = args.cache.v_slot_stride =
        slot_positions * static_cast<std::int64_t>(row_elems);
    args.cache.page_table_stride = pages;
    args.cache.pages = paged ? 1 + *std::max_element(table.begin(), table.end()) : 0;
    args.attention.rows = static_cast<std::int32_t>(chosen.size());
    args.cache.kv_heads = kKvHeads;
    args.cache.slots = slot_count;
    args.cache.length = paged ? pages * ring_or_page : slot_positions;
    args.max_keys = positions_;
    args.attention.scale = scale;
    args.attention.softcap = shape_.softcap == Switch::kOn ? softcap : 0.0F;
    // Doubles, so that the workspace is aligned as an engine's is.
    std::vector<double> workspace(
        launch.workspace_bytes(args.attention.rows, args.cache.kv_heads, runtime_key_bound(args)) /
            8 +
        2);
    std::memset(workspace.data(), poison, 8 * workspace.size());
    args.workspace = workspace.data();
    args.workspace_bytes = 8 * workspace.size();
    const auto launched = launch.launch(args, nullptr);
    INFO((launched ? std::string() : launched.error().message));
    REQUIRE(launched);
    return out;
  }

  std::vector<std::uint16_t> run(const runtime::DecodeLaunch& launch) const {
    std::vector<std::size_t> all(rows_.size());
    std::iota(all.begin(), all.end(), std::size_t{0});
    return run(launch, all);
  }

  /// The reference's outputs of every row: [rows][heads][D].
  std::vector<std::uint16_t> expected() const {
    Tile64Reference reference;
    reference.half = shape_.dtype == Dtype::kBf16 ? Half::kBf16 : Half::kF16;
    reference.p32 = shape_.p32 == Switch::kOn;
    reference.softcap_on = shape_.softcap == Switch::kOn;
    reference.scale = scale;
    reference.softcap = softcap;
    reference.ex2 = shape_.arith == Arith::kTile64Ex2;
    std::vector<std::uint16_t> out;
    for (std::size_t r = 0; r < rows_.size(); ++r) {
      const Stream& stream = streams_[size(rows_[r].stream)];
      for (int head = 0; head < heads(); ++head) {
        Tile64Reference::Row row;
        row.q = std::span(q_).subspan((r * size(heads()) + size(head)) * dims(), dims());
        const int kv_head = head / static_cast<int>(shape_.gqa_ratio);
        for (int p = 0; p <= rows_[r].position; ++p) {
          row.k.push_back(at(stream.k, p, kv_head));
          row.v.push_back(at(stream.v, p, kv_head));
        }
        row.first = first_key(rows_[r]);
        row.last = rows_[r].position;
        row.has_sink = shape_.sinks == Switch::kOn;
        row.sink = sinks_[size(head)];
        for (const float value : reference.attend(row)) out.push_back(reference.rounded(value));
      }
    }
    return out;
  }

  std::uint16_t rounded(float value) const {
    return shape_.dtype == Dtype::kBf16 ? narrow<Half::kBf16>(value) : narrow<Half::kF16>(value);
  }

  float scale = 0.37F;
  float softcap = 5.0F;

 private:
  static std::size_t size(int value) { return static_cast<std::size_t>(value); }
  static std::int32_t runtime_key_bound(const broach_window_rows_decode_args& args) {
    return args.max_keys;
  }
  std::size_t offset(int position, int kv_head) const {
    return (size(position) * size(kKvHeads) + size(kv_head)) * dims();
  }
  std::span<std::uint16_t> at(std::vector<std::uint16_t>& values, int position, int kv_head) const {
    return std::span(values).subspan(offset(position, kv_head), dims());
  }
  std::span<const std::uint16_t> at(const std::vector<std::uint16_t>& values, int position,
                                    int kv_head) const {
    return std::span(values).subspan(offset(position, kv_head), dims());
  }

  WindowRowsShape shape_;
  std::vector<DecodeRow> rows_;
  int positions_;
  std::vector<Stream> streams_;
  std::vector<std::uint16_t> q_;
  std::vector<float> sinks_;
};

/// A tile64 decode kernel compiled for the host, launched with schedules of the test's choice.
class Tile64Kernel {
 public:
  explicit Tile64Kernel(const WindowRowsShape& shape, const specializer::Variant& variant = {},
                        runtime::Device& device = host_device())
      : shape_(shape), kernel_(device, shape, variant) {}

  std::unique_ptr<const runtime::DecodeLaunch> launch(
      std::optional<runtime::Tile64Schedule> schedule = std::nullopt) const {
    auto made = runtime::make_tile64_launch(shape_, kernel_.plan, *kernel_.module, 1, schedule);
    REQUIRE(made);
    return *std::move(made);
  }

  const specializer::Plan& plan() const { return kernel_.plan; }
  runtime::Module& module() const { return *kernel_.module; }

 private:
  WindowRowsShape shape_;
  CompiledKernel kernel_;
};

}  // namespace broach::test
