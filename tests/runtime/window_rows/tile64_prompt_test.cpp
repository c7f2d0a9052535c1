#include "tests/runtime/window_rows/tile64_problem.hpp"

// tile64's prompt on the host target, by bits: against the arithmetic one row at a time, against
// the decode form, and against itself however a chunk is cut.
namespace broach {
namespace {

using test::Stream;
using test::Tile64Kernel;

constexpr int kPositions = 400;

/// Rows first .. first + rows - 1 of a sequence.
struct Chunk {
  std::size_t sequence = 0;
  int first = 0;
  int rows = 0;
};

/// Prompt chunks over caches laid out as a shape asks; sequence s lies in slot s.
class PromptProblem {
 public:
  struct Sequence {
    int p0 = 0;
    int rows = 0;
  };

  PromptProblem(const WindowRowsShape& shape, std::vector<Sequence> sequences)
      : shape_(shape), sequences_(std::move(sequences)) {
    std::mt19937 random(3);
    std::normal_distribution<float> normal;
    const auto fill = [&](std::vector<std::uint16_t>& values, int count, float rms) {
      values.resize(size(count) * dims());
      for (auto& value : values) value = rounded(rms * normal(random));
    };
    int rows = 0;
    for (const Sequence& sequence : sequences_) {
      starts_.push_back(rows);
      rows += sequence.rows;
      streams_.emplace_back();
      fill(streams_.back().k, kPositions, 0.4F);
      fill(streams_.back().v, kPositions, 1.0F);
      for (int i = 0; i < sequence.rows; ++i) hi.push_back(sequence.p0 + i);
    }
    fill(q_, rows * heads(), 1.0F);
    sinks_.resize(size(heads()));
    for (float& sink : sinks_) sink = 2.0F * normal(random);
  }

  int heads() const { return static_cast<int>(shape_.gqa_ratio); }  // one KV head
  std::size_t dims() const { return shape_.head_dim; }
  std::size_t row_elems() const { return size(heads()) * dims(); }
  std::vector<Chunk> whole() const {
    std::vector<Chunk> chunks;
    for (std::size_t s = 0; s < sequences_.size(); ++s)
      chunks.push_back({s, 0, sequences_[s].rows});
    return chunks;
  }
  std::uint16_t& value(std::size_t sequence, int position, std::size_t dim) {
    return streams_[sequence].v[size(position) * dims() + dim];
  }
  std::uint16_t& query(int row, std::size_t elem) { return q_[size(row) * row_elems() + elem]; }

  /// The outputs of one launch of these chunks, each at its row: [all rows][heads][D].
  std::vector<std::uint16_t> run(const runtime::DecodeLaunch& launch,
                                 const std::vector<Chunk>& chunks, bool use_hi = true) const {
    std::vector<std::int32_t> offsets{0}, positions, slots, last;
    std::vector<std::uint16_t> q;
    for (const Chunk& chunk : chunks) {
      const int begin = starts_[chunk.sequence] + chunk.first;
      offsets.push_back(offsets.back() + chunk.rows);
      positions.push_back(sequences_[chunk.sequence].p0 + chunk.first);
      slots.push_back(static_cast<std::int32_t>(chunk.sequence));
      last.insert(last.end(), hi.begin() + begin, hi.begin() + begin + chunk.rows);
      const auto from = q_.begin() + static_cast<std::ptrdiff_t>(size(begin) * row_elems());
      q.insert(q.end(), from, from + static_cast<std::ptrdiff_t>(size(chunk.rows) * row_elems()));
    }
    const Caches caches = lay_out();
    std::vector<std::uint16_t> out(q.size(), 0xFFFF);
    PromptArgs args;
    args.common = common(caches, q, out);
    args.common.rows = offsets.back();
    args.common.positions = positions.data();
    args.common.slots = slots.data();
    args.offsets = offsets.data();
    args.hi = use_hi ? last.data() : nullptr;
    args.sequences = static_cast<std::int32_t>(chunks.size());
    const auto launched = launch.launch_prompt(args, nullptr);
    INFO((launched ? std::string() : launched.error().message));
    REQUIRE(launched);
    std::vector<std::uint16_t> at_rows(q_.size(), 0xFFFF);
    std::size_t from = 0;
    for (const Chunk& chunk : chunks) {
      const std::size_t count = size(chunk.rows) * row_elems();
      std::copy_n(out.begin() + static_cast<std::ptrdiff_t>(from), count,
                  at_rows.begin() + static_cast<std::ptrdiff_t>(
                                        size(starts_[chunk.sequence] + chunk.first) * row_elems()));
      from += count;
    }
    return at_rows;
  }

  /// The same rows through a decode kernel, over the same caches.
  std::vector<std::uint16_t> decode(const runtime::DecodeLaunch& launch) const {
    std::vector<std::int32_t> positions, slots;
    for (std::size_t s = 0; s < sequences_.size(); ++s) {
      for (int i = 0; i < sequences_[s].rows; ++i) {
        positions.push_back(sequences_[s].p0 + i);
        slots.push_back(static_cast<std::int32_t>(s));
      }
    }
    const Caches caches = lay_out();
    std::vector<std::uint16_t> out(q_.size(), 0xFFFF);
    DecodeArgs args = common(caches, q_, out);
    args.rows = static_cast<std::int32_t>(positions.size());
    args.positions = positions.data();
    args.slots = slots.data();
    args.max_keys = kPositions;
    std::vector<double> workspace(launch.workspace_bytes(args.rows, 1, kPositions) / 8 + 2);
    args.workspace = workspace.data();
    args.workspace_bytes = workspace.size() * 8;
    REQUIRE(launch.launch(args, nullptr));
    return out;
  }

  /// The reference's outputs of every row.
  std::vector<std::uint16_t> expected(bool use_hi = true) const {
    test::Tile64Reference reference;
    reference.half = shape_.dtype == Dtype::kBf16 ? Half::kBf16 : Half::kF16;
    reference.p32 = shape_.p32 == Switch::kOn;
    reference.scale = 0.37F;
    std::vector<std::uint16_t> out;
    for (std::size_t s = 0; s < sequences_.size(); ++s) {
      test::Tile64Reference::Row row;
      for (int p = 0; p < kPositions; ++p) {
        row.k.push_back(std::span(streams_[s].k).subspan(size(p) * dims(), dims()));
        row.v.push_back(std::span(streams_[s].v).subspan(size(p) * dims(), dims()));
      }
      for (int i = 0; i < sequences_[s].rows; ++i) {
        const int at = starts_[s] + i;
        row.first = first_key(sequences_[s].p0 + i);
        row.last = use_hi ? hi[size(at)] : sequences_[s].p0 + i;
        for (int head = 0; head < heads(); ++head) {
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
  struct Caches {
    std::vector<std::uint16_t> k, v;
    std::vector<std::int32_t> table;
    int slot_positions = 0, pages = 0;
  };

  static std::size_t size(int value) { return static_cast<std::size_t>(value); }
  std::uint16_t rounded(float value) const {
    return shape_.dtype == Dtype::kBf16 ? narrow<Half::kBf16>(value) : narrow<Half::kF16>(value);
  }
  int first_key(int position) const {
    return shape_.window == 0 ? 0 : std::max(0, position - static_cast<int>(shape_.window) + 1);
  }

  // What no row of a sequence sees holds NaN.
  Caches lay_out() const {
    Caches caches;
    const auto length = static_cast<int>(shape_.kv_layout.length);
    const bool paged = shape_.kv_layout.kind == KvLayoutKind::kPaged;
    const bool linear = shape_.kv_layout.kind == KvLayoutKind::kLinear;
    const auto slots = static_cast<int>(sequences_.size());
    caches.pages = paged ? (kPositions + length - 1) / length : 0;
    caches.slot_positions = linear ? kPositions : length;
    const int held = paged ? slots * caches.pages : slots;
    caches.table.resize(size(held));
    std::iota(caches.table.begin(), caches.table.end(), 0);
    if (paged) std::shuffle(caches.table.begin(), caches.table.end(), std::mt19937(5));
    caches.k.assign(size(held) * size(caches.slot_positions) * dims(), 0x7FC1);
    caches.v = caches.k;
    for (int s = 0; s < slots; ++s) {
      const Sequence& sequence = sequences_[size(s)];
      for (int p = first_key(sequence.p0); p < sequence.p0 + sequence.rows; ++p) {
        const int holder = paged ? caches.table[size(s * caches.pages + p / length)] : s;
        const int index = holder * caches.slot_positions + (linear ? p : p % length);
        const auto from = static_cast<std::ptrdiff_t>(size(p) * dims());
        const auto to = static_cast<std::ptrdiff_t>(size(index) * dims());
        std::copy_n(streams_[size(s)].k.begin() + from, dims(), caches.k.begin() + to);
        std::copy_n(streams_[size(s)].v.begin() + from, dims(), caches.v.begin() + to);
      }
    }
    return caches;
  }

  DecodeArgs common(const Caches& caches, const std::vector<std::uint16_t>& q,
                    std::vector<std::uint16_t>& out) const {
    const auto dim = static_cast<std::int64_t>(dims());
    DecodeArgs args;
    args.q = q.data();
    args.k = caches.k.data();
    args.v = caches.v.data();
    args.out = out.data();
    args.page_table = caches.pages > 0 ? caches.table.data() : nullptr;
    args.sinks = shape_.sinks == Switch::kOn ? sinks_.data() : nullptr;
    args.q_head_stride = args.out_head_stride = dim;
    args.q_row_stride = args.out_row_stride = static_cast<std::int64_t>(row_elems());
    args.k_head_stride = args.k_position_stride = args.v_head_stride = args.v_position_stride = dim;
    args.k_slot_stride = args.v_slot_stride = caches.slot_positions * dim;
    args.page_table_stride = caches.pages;
    args.kv_heads = 1;
    args.slot_count = static_cast<std::int32_t>(sequences_.size());
    args.length = caches.pages > 0 ? caches.pages * caches.slot_positions : caches.slot_positions;
    args.scale = 0.37F;
    return args;
  }

  WindowRowsShape shape_;
  std::vector<Sequence> sequences_;
  std::vector<int> starts_;
  std::vector<Stream> streams_;
  std::vector<std::uint16_t> q_;
  std::vector<float> sinks_;
};

WindowRowsShape shape_of(std::uint32_t head_dim, std::uint32_t ratio, std::uint32_t window,
                         KvLayout layout = {}, Switch p32 = Switch::kOff) {
  WindowRowsShape shape;
  shape.head_dim = head_dim;
  shape.gqa_ratio = ratio;
  shape.window = window;
  shape.kv_layout = layout;
  shape.arith = Arith::kTile64;
  shape.form = Form::kPrompt;
  shape.p32 = p32;
  return shape;
}

WindowRowsShape as_decode(WindowRowsShape shape) {
  shape.form = Form::kDecode;
  return shape;
}

/// Rows 5 .. 40 of the first sequence see each other, as an image's do.
void add_image(PromptProblem& problem, int p0) {
  for (int i = 5; i <= 40; ++i) problem.hi[static_cast<std::size_t>(i)] = p0 + 40;
}

std::size_t differences(const std::vector<std::uint16_t>& a, const std::vector<std::uint16_t>& b) {
  REQUIRE(a.size() == b.size());
  std::size_t count = 0;
  for (std::size_t i = 0; i < a.size(); ++i) count += a[i] != b[i];
  return count;
}

}  // namespace

TEST_CASE("a prompt gives the reference's bits, and so does the decode of each of its rows",
          "[runtime][tile64]") {
  std::vector<WindowRowsShape> shapes;
  shapes.push_back(shape_of(64, 2, 100, {KvLayoutKind::kRing, 200}, Switch::kOn));
  shapes.push_back(shape_of(80, 3, 0, {KvLayoutKind::kPaged, 24}));
  shapes.back().dtype = Dtype::kF16;
  shapes.back().sinks = Switch::kOn;
  shapes.push_back(shape_of(256, 1, 130, {}, Switch::kOn));
  shapes.push_back(shape_of(512, 1, 70));
  shapes.back().checked = Switch::kOn;
  for (const WindowRowsShape& shape : shapes) {
    CAPTURE(shape.head_dim, shape.window);
    PromptProblem problem(shape, {{200, 66}, {0, 1}, {31, 40}});
    const Tile64Kernel kernel(shape);
    const auto plain = problem.run(*kernel.launch(), problem.whole(), false);
    CHECK(differences(plain, problem.expected(false)) == 0);
    CHECK(differences(problem.decode(*Tile64Kernel(as_decode(shape)).launch()), plain) == 0);
    const Tile64Kernel generic(shape, {{}, Switch::kOn});
    CHECK(differences(problem.run(*generic.launch(), problem.whole(), false), plain) == 0);
    add_image(problem, 200);
    const auto image = problem.run(*kernel.launch(), problem.whole());
    CHECK(differences(image, problem.expected()) == 0);
    CHECK(differences(image, plain) > 0);
  }
}

TEST_CASE("a prompt's bits do not depend on how it is cut", "[runtime][tile64]") {
  const WindowRowsShape shape = shape_of(64, 1, 90, {KvLayoutKind::kRing, 180}, Switch::kOn);
  PromptProblem problem(shape, {{250, 70}});
  const Tile64Kernel kernel(shape);
  const auto launch = kernel.launch();
  const auto whole = problem.run(*launch, problem.whole(), false);
  for (int cut = 1; cut < 70; ++cut) {  // every residue modulo 64
    CAPTURE(cut);
    CHECK(differences(problem.run(*launch, {{0, 0, cut}, {0, cut, 70 - cut}}, false), whole) == 0);
  }
  std::vector<Chunk> rows;
  for (int row = 0; row < 70; ++row) rows.push_back({0, row, 1});
  CHECK(differences(problem.run(*launch, rows, false), whole) == 0);
}

TEST_CASE("rows that do not see a non-finite value, key or query keep their bits",
          "[runtime][tile64]") {
  const Switch p32 = GENERATE(Switch::kOff, Switch::kOn);
  const WindowRowsShape shape = shape_of(64, 1, 60, {}, p32);
  const PromptProblem clean(shape, {{130, 70}});
  const Tile64Kernel kernel(shape);
  const auto launch = kernel.launch();
  const auto expected = clean.expected(false);
  constexpr std::uint16_t kPlants[] = {0x7F80, 0xFF80, 0x7FC0};
  for (const std::uint16_t plant : kPlants) {
    PromptProblem problem = clean;
    const int seen_late = 165;   // by rows 35 on
    const int seen_early = 100;  // by rows up to 29
    problem.value(0, seen_late, 7) = plant;
    problem.value(0, seen_early, 9) = plant;
    problem.query(33, 3) = plant;
    const auto out = problem.run(*launch, problem.whole(), false);
    for (int row = 0; row < 70; ++row) {
      CAPTURE(plant, row);
      const int position = 130 + row;
      const bool sees = position >= seen_late || position - 59 <= seen_early || row == 33;
      std::size_t changed = 0;
      std::size_t non_finite = 0;
      for (std::size_t d = 0; d < 64; ++d) {
        const std::size_t i = static_cast<std::size_t>(row) * 64 + d;
        changed += out[i] != expected[i];
        non_finite += (out[i] & 0x7F80U) == 0x7F80U;
      }
      if (sees) {
        CHECK(non_finite == (row == 33 ? 64U : 1U));
      } else {
        CHECK(changed == 0);
      }
    }
  }
}

TEST_CASE("each planted fault of tile64's prompt changes bits", "[runtime][tile64]") {
  WindowRowsShape shape = shape_of(64, 2, 60, {KvLayoutKind::kPaged, 24}, Switch::kOn);
  shape.sinks = Switch::kOn;
  PromptProblem problem(shape, {{130, 64}});
  add_image(problem, 130);
  const std::string control = GENERATE("window_early", "fold_unscaled", "low_half_dropped",
                                       "hi_ignored", "sink_left_out", "page_off_by_one");
  CAPTURE(control);
  const Tile64Kernel kernel(shape, {control, Switch::kOff});
  CHECK(differences(problem.run(*kernel.launch(), problem.whole()), problem.expected()) > 0);
}

}  // namespace broach
