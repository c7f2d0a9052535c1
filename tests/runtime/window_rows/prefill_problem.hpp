#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <numeric>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "broach/window_rows.hpp"
#include "runtime/window_rows/decode_launch.hpp"
#include "runtime/window_rows/prefill_launch.hpp"
#include "tests/kernel_src/step_reference.hpp"
#include "tests/runtime/window_rows/compiled_kernel.hpp"
#include "tests/support/catch.hpp"
#include "tools/contract/window_rows/launch.hpp"

namespace broach::test {

/// A prefill kernel compiled for a device, ready to launch.
class PrefillKernel {
 public:
  explicit PrefillKernel(const WindowRowsShape& shape, const specializer::Variant& variant = {},
                         runtime::Device& device = host_device(), const std::string& define = {})
      : device_(device), kernel_(device, shape, variant, define) {
    auto made = runtime::make_prefill_launch(shape, kernel_.plan, *kernel_.module);
    REQUIRE(made);
    launch_ = *std::move(made);
  }

  runtime::Device& device() const { return device_; }
  Result<void> launch(const broach_window_rows_prefill_args& args) const {
    return launch_->launch(args, nullptr);
  }

 private:
  runtime::Device& device_;
  CompiledKernel kernel_;
  std::unique_ptr<const runtime::PrefillLaunch> launch_;
};

/// Rows first .. first + rows - 1 of a sequence.
struct Chunk {
  std::size_t sequence = 0;
  int first = 0;
  int rows = 0;
};

/// How a launch differs where no bit may.
struct PrefillPlace {
  int slot_shift = 0;             ///< Slot of sequence s is s + slot_shift.
  int stretch = 1;                ///< Linear slots hold so many times the positions.
  std::uint16_t unseen = 0x7FC1;  ///< What the cache holds where no row sees it.
  std::uint16_t poison = 0xFFFF;  ///< What the outputs hold before.
};

/// What a launch is told of its sequences and rows, for tests that spoil it.
struct PrefillInputs {
  std::vector<std::int32_t> offsets{0}, positions, slots, hi, page_table;
  WindowRowsDecodeArgs sizes;
};

/// Prefill chunks over caches laid out as a shape asks; sequence s lies in slot s.
class PrefillProblem {
 public:
  static constexpr int kPositions = 400;

  struct Sequence {
    int p0 = 0;
    int rows = 0;
  };

  PrefillProblem(const WindowRowsShape& shape, std::vector<Sequence> sequences, int kv_heads = 1)
      : shape_(shape), sequences_(std::move(sequences)), kv_heads_(kv_heads) {
    std::mt19937 random(3);
    std::normal_distribution<float> normal;
    const auto fill = [&](std::vector<std::uint16_t>& values, std::size_t count, float rms) {
      values.resize(count);
      for (auto& value : values) value = rounded(rms * normal(random));
    };
    int rows = 0;
    for (const Sequence& sequence : sequences_) {
      starts_.push_back(rows);
      rows += sequence.rows;
      streams_.emplace_back();
      fill(streams_.back().k, size(kPositions) * position_elems(), 0.4F);
      fill(streams_.back().v, size(kPositions) * position_elems(), 1.0F);
      for (int i = 0; i < sequence.rows; ++i) hi.push_back(sequence.p0 + i);
    }
    fill(q_, size(rows) * row_elems(), 1.0F);
    sinks_.resize(size(heads()));
    for (float& sink : sinks_) sink = 2.0F * normal(random);
  }

  int heads() const { return kv_heads_ * static_cast<int>(shape_.gqa_ratio); }
  std::size_t dims() const { return shape_.head_dim; }
  std::size_t row_elems() const { return size(heads()) * dims(); }
  std::size_t position_elems() const { return size(kv_heads_) * dims(); }
  const std::vector<Sequence>& sequences() const { return sequences_; }
  const WindowRowsShape& shape() const { return shape_; }

  /// Every sequence whole, in order.
  std::vector<Chunk> whole() const {
    std::vector<Chunk> chunks;
    for (std::size_t s = 0; s < sequences_.size(); ++s)
      chunks.push_back({s, 0, sequences_[s].rows});
    return chunks;
  }
  /// Elements of one position's keys or values ([KV head][D]), or of one row's queries.
  std::uint16_t& key(std::size_t sequence, int position, std::size_t elem) {
    return streams_[sequence].k[size(position) * position_elems() + elem];
  }
  std::uint16_t& value(std::size_t sequence, int position, std::size_t elem) {
    return streams_[sequence].v[size(position) * position_elems() + elem];
  }
  std::uint16_t& query(int row, std::size_t elem) { return q_[size(row) * row_elems() + elem]; }

  /// Rows 5 .. 40 of the first sequence see each other, as an image's do.
  void add_image() {
    for (int i = 5; i <= 40; ++i) hi[size(i)] = sequences_.front().p0 + 40;
  }

  /// The same keys, values and queries in another layout.
  PrefillProblem laid_out(KvLayout layout) const {
    PrefillProblem other = *this;
    other.shape_.kv_layout = layout;
    return other;
  }

  /// The outputs of one launch of these chunks, each at its row: [all rows][heads][D]. A kernel has
  /// PrefillKernel's device() and launch().
  template <class Kernel>
  std::vector<std::uint16_t> run(const Kernel& kernel, const std::vector<Chunk>& chunks,
                                 bool use_hi = true, const PrefillPlace& place = {}) const {
    auto out = try_run(kernel, chunks, use_hi, place, [](PrefillInputs&) {});
    INFO((out ? std::string() : out.error().message));
    REQUIRE(out);
    return *std::move(out);
  }

  /// The same once `spoil` has changed the launch's inputs, or why it did not run.
  template <class Kernel, class Spoil>
  Result<std::vector<std::uint16_t>> try_run(const Kernel& kernel, const std::vector<Chunk>& chunks,
                                             bool use_hi, const PrefillPlace& place,
                                             const Spoil& spoil) const {
    runtime::Device& device = kernel.device();
    PrefillInputs inputs;
    std::vector<std::uint16_t> q;
    for (const Chunk& chunk : chunks) {
      const int begin = starts_[chunk.sequence] + chunk.first;
      inputs.offsets.push_back(inputs.offsets.back() + chunk.rows);
      inputs.positions.push_back(sequences_[chunk.sequence].p0 + chunk.first);
      inputs.slots.push_back(static_cast<std::int32_t>(chunk.sequence) + place.slot_shift);
      inputs.hi.insert(inputs.hi.end(), hi.begin() + begin, hi.begin() + begin + chunk.rows);
      const auto from = q_.begin() + static_cast<std::ptrdiff_t>(size(begin) * row_elems());
      q.insert(q.end(), from, from + static_cast<std::ptrdiff_t>(size(chunk.rows) * row_elems()));
    }
    const Caches caches = lay_out(place);
    inputs.page_table = caches.table;
    inputs.sizes = common(caches, static_cast<int>(sequences_.size()) + place.slot_shift);
    inputs.sizes.attention.rows = inputs.offsets.back();
    spoil(inputs);
    std::vector<std::uint16_t> out(q.size(), place.poison);
    const auto on_q = upload(device, q);
    const auto on_k = upload(device, caches.k);
    const auto on_v = upload(device, caches.v);
    const auto on_out = upload(device, out);
    const auto on_positions = upload(device, inputs.positions);
    const auto on_slots = upload(device, inputs.slots);
    const auto on_offsets = upload(device, inputs.offsets);
    const auto on_hi = upload(device, inputs.hi);
    const auto on_table = upload(device, inputs.page_table);
    const auto on_sinks = upload(device, sinks_);
    WindowRowsPrefillArgs args;
    args.attention = inputs.sizes.attention;
    args.cache = inputs.sizes.cache;
    args.max_keys = inputs.sizes.max_keys;
    args.attention.q = on_q.data();
    args.cache.k = on_k.data();
    args.cache.v = on_v.data();
    args.attention.out = on_out.data();
    args.positions = static_cast<const std::int32_t*>(on_positions.data());
    args.slots = static_cast<const std::int32_t*>(on_slots.data());
    if (caches.pages > 0) {
      args.cache.page_table = static_cast<const std::int32_t*>(on_table.data());
    }
    if (shape_.sinks == Switch::kOn) {
      args.attention.sinks = static_cast<const float*>(on_sinks.data());
    }
    args.offsets = static_cast<const std::int32_t*>(on_offsets.data());
    args.hi = use_hi ? static_cast<const std::int32_t*>(on_hi.data()) : nullptr;
    args.sequences = static_cast<std::int32_t>(chunks.size());
    if (auto launched = kernel.launch(args); !launched) return launched.error();
    if (auto done = device.synchronize(nullptr); !done) return done.error();
    if (auto copied = device.copy_to_host(out.data(), on_out.data(), out.size() * 2); !copied) {
      return copied.error();
    }

    std::vector<std::uint16_t> at_rows(q_.size(), place.poison);
    std::size_t from = 0;
    for (const Chunk& chunk : chunks) {
      const std::size_t count = size(chunk.rows) * row_elems();
      const std::size_t to = size(starts_[chunk.sequence] + chunk.first) * row_elems();
      std::copy_n(out.begin() + static_cast<std::ptrdiff_t>(from), count,
                  at_rows.begin() + static_cast<std::ptrdiff_t>(to));
      from += count;
    }
    return at_rows;
  }

  /// The same rows through a decode on the host, over the same caches.
  std::vector<std::uint16_t> decode(const runtime::DecodeLaunch& launch) const {
    std::vector<std::int32_t> positions, slots;
    for (std::size_t s = 0; s < sequences_.size(); ++s) {
      for (int i = 0; i < sequences_[s].rows; ++i) {
        positions.push_back(sequences_[s].p0 + i);
        slots.push_back(static_cast<std::int32_t>(s));
      }
    }
    const Caches caches = lay_out({});
    std::vector<std::uint16_t> out(q_.size(), 0xFFFF);
    WindowRowsDecodeArgs args = common(caches, static_cast<int>(sequences_.size()));
    args.attention.q = q_.data();
    args.cache.k = const_cast<std::uint16_t*>(caches.k.data());
    args.cache.v = const_cast<std::uint16_t*>(caches.v.data());
    args.attention.out = out.data();
    args.cache.page_table = caches.pages > 0 ? caches.table.data() : nullptr;
    args.attention.sinks = shape_.sinks == Switch::kOn ? sinks_.data() : nullptr;
    args.attention.rows = static_cast<std::int32_t>(positions.size());
    args.positions = positions.data();
    args.slots = slots.data();
    args.max_keys = kPositions;
    std::vector<double> workspace(
        launch.workspace_bytes(args.attention.rows, kv_heads_, kPositions) / 8 + 2);
    args.workspace = workspace.data();
    args.workspace_bytes = workspace.size() * 8;
    REQUIRE(launch.launch(args, nullptr));
    return out;
  }

  /// A reference's outputs of every row.
  template <class Reference>
  std::vector<std::uint16_t> expected(bool use_hi = true, bool two_k8 = false) const {
    Reference reference;
    reference.half = shape_.dtype == Dtype::kBf16 ? Half::kBf16 : Half::kF16;
    reference.p32 = shape_.p32 == Switch::kOn;
    reference.softcap_on = shape_.softcap == Switch::kOn;
    reference.scale = kScale;
    reference.softcap = kSoftcap;
    reference.two_k8 = two_k8;
    if constexpr (requires { reference.ex2; }) reference.ex2 = shape_.arith == Arith::kTile64Ex2;
    std::vector<std::uint16_t> out;
    for (std::size_t s = 0; s < sequences_.size(); ++s) {
      for (int i = 0; i < sequences_[s].rows; ++i) {
        const int at = starts_[s] + i;
        StepReference::Row row;
        row.first = first_key(sequences_[s].p0 + i);
        row.last = use_hi ? hi[size(at)] : sequences_[s].p0 + i;
        for (int head = 0; head < heads(); ++head) {
          const std::size_t kv_head = size(head) / shape_.gqa_ratio;
          row.k = stream_rows(streams_[s].k, kv_head);
          row.v = stream_rows(streams_[s].v, kv_head);
          row.q = std::span(q_).subspan(size(at) * row_elems() + size(head) * dims(), dims());
          row.has_sink = shape_.sinks == Switch::kOn;
          row.sink = sinks_[size(head)];
          for (const float value : reference.attend(row)) out.push_back(reference.rounded(value));
        }
      }
    }
    return out;
  }

  std::vector<std::int32_t> hi;  ///< Each row's last key.

 private:
  static constexpr float kScale = 0.37F;
  static constexpr float kSoftcap = 5.0F;

  /// One stream's keys and values by position, as no layout has cut them: [position][KV head][D].
  struct Stream {
    std::vector<std::uint16_t> k, v;
  };
  struct Caches {
    std::vector<std::uint16_t> k, v;
    std::vector<std::int32_t> table;
    int slot_positions = 0, pages = 0;
  };

  static std::size_t size(int value) { return static_cast<std::size_t>(value); }

  template <class T>
  static contract::DeviceBytes upload(runtime::Device& device, const std::vector<T>& values) {
    auto bytes = contract::DeviceBytes::copy_of(device, std::as_bytes(std::span(values)));
    REQUIRE(bytes);
    return *std::move(bytes);
  }

  std::uint16_t rounded(float value) const {
    return shape_.dtype == Dtype::kBf16 ? narrow<Half::kBf16>(value) : narrow<Half::kF16>(value);
  }
  int first_key(int position) const {
    return shape_.window == 0 ? 0 : std::max(0, position - static_cast<int>(shape_.window) + 1);
  }
  std::vector<std::span<const std::uint16_t>> stream_rows(const std::vector<std::uint16_t>& values,
                                                          std::size_t kv_head) const {
    std::vector<std::span<const std::uint16_t>> rows;
    for (int p = 0; p < kPositions; ++p) {
      rows.push_back(
          std::span(values).subspan(size(p) * position_elems() + kv_head * dims(), dims()));
    }
    return rows;
  }

  Caches lay_out(const PrefillPlace& place) const {
    Caches caches;
    const auto length = static_cast<int>(shape_.kv_layout.length);
    const bool paged = shape_.kv_layout.kind == KvLayoutKind::kPaged;
    const bool linear = shape_.kv_layout.kind == KvLayoutKind::kLinear;
    const int slots = static_cast<int>(sequences_.size()) + place.slot_shift;
    caches.pages = paged ? (kPositions + length - 1) / length : 0;
    caches.slot_positions = linear ? kPositions * place.stretch : length;
    const int held = paged ? slots * caches.pages : slots;
    caches.table.resize(size(held));
    std::iota(caches.table.begin(), caches.table.end(), 0);
    if (paged) std::shuffle(caches.table.begin(), caches.table.end(), std::mt19937(5));
    caches.k.assign(size(held) * size(caches.slot_positions) * position_elems(), place.unseen);
    caches.v = caches.k;
    for (std::size_t s = 0; s < sequences_.size(); ++s) {
      const int slot = static_cast<int>(s) + place.slot_shift;
      const Sequence& sequence = sequences_[s];
      for (int p = first_key(sequence.p0); p < sequence.p0 + sequence.rows; ++p) {
        const int holder = paged ? caches.table[size(slot * caches.pages + p / length)] : slot;
        const int index = holder * caches.slot_positions + (linear ? p : p % length);
        const auto from = static_cast<std::ptrdiff_t>(size(p) * position_elems());
        const auto to = static_cast<std::ptrdiff_t>(size(index) * position_elems());
        std::copy_n(streams_[s].k.begin() + from, position_elems(), caches.k.begin() + to);
        std::copy_n(streams_[s].v.begin() + from, position_elems(), caches.v.begin() + to);
      }
    }
    return caches;
  }

  WindowRowsDecodeArgs common(const Caches& caches, int slots) const {
    const auto dim = static_cast<std::int64_t>(dims());
    const auto position = static_cast<std::int64_t>(position_elems());
    WindowRowsDecodeArgs args;
    args.attention.q_head_stride = args.attention.out_head_stride = dim;
    args.attention.q_row_stride = args.attention.out_row_stride =
        static_cast<std::int64_t>(row_elems());
    args.cache.k_head_stride = args.cache.v_head_stride = dim;
    args.cache.k_position_stride = args.cache.v_position_stride = position;
    args.cache.k_slot_stride = args.cache.v_slot_stride = caches.slot_positions * position;
    args.cache.page_table_stride = caches.pages;
    args.cache.pages = static_cast<std::int32_t>(caches.pages > 0 ? caches.table.size() : 0);
    args.cache.kv_heads = kv_heads_;
    args.cache.slots = slots;
    args.cache.length =
        caches.pages > 0 ? caches.pages * caches.slot_positions : caches.slot_positions;
    args.attention.scale = kScale;
    args.attention.softcap = shape_.softcap == Switch::kOn ? kSoftcap : 0.0F;
    return args;
  }

  WindowRowsShape shape_;
  std::vector<Sequence> sequences_;
  int kv_heads_;
  std::vector<int> starts_;
  std::vector<Stream> streams_;
  std::vector<std::uint16_t> q_;
  std::vector<float> sinks_;
};

/// A prefill's shape by what the tests vary.
inline WindowRowsShape prefill_shape(Arith arith, std::uint32_t head_dim, std::uint32_t ratio,
                                     std::uint32_t window, KvLayout layout = {},
                                     Switch p32 = Switch::kOff) {
  WindowRowsShape shape;
  shape.head_dim = head_dim;
  shape.gqa_ratio = ratio;
  shape.window = window;
  shape.kv_layout = layout;
  shape.arith = arith;
  shape.form = Form::kPrefill;
  shape.p32 = p32;
  return shape;
}

inline std::size_t differences(const std::vector<std::uint16_t>& a,
                               const std::vector<std::uint16_t>& b) {
  REQUIRE(a.size() == b.size());
  std::size_t count = 0;
  for (std::size_t i = 0; i < a.size(); ++i) count += a[i] != b[i];
  return count;
}

/// A chip's outputs are the host's with the chip's MMA step, bit for bit: images, a value and a
/// query that are not finite, the specialised and the generic kernel.
inline void check_device_bits(runtime::Device& chip, PrefillProblem problem) {
  const WindowRowsShape& shape = problem.shape();
  CAPTURE(shape.head_dim, shape.gqa_ratio, shape.window);
  const bool two_k8 = chip.target().mma_step == specializer::MmaStep::kTwoK8;
  problem.add_image();
  problem.value(0, 221, 0) = 0x7F80;
  problem.query(3, 1) = 0x7FC1;
  const PrefillKernel host(shape, {}, host_device(), two_k8 ? "-DBROACH_MMA_STEP_TWO_K8" : "");
  const auto expected = problem.run(host, problem.whole());
  for (const Switch generic : {Switch::kOff, Switch::kOn}) {
    const PrefillKernel device(shape, {{}, generic}, chip);
    CHECK(differences(problem.run(device, problem.whole()), expected) == 0);
  }
}

}  // namespace broach::test
