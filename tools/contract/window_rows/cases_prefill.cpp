#include <algorithm>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tools/contract/window_rows/cases.hpp"

namespace broach::contract::window_rows {
namespace {

constexpr std::uint32_t kWindow = 1024;
constexpr std::uint32_t kRing = 1536;
constexpr float kCap = 30.0F;

// A stretch of rows that see each other to its end, counted from its chunk's first row: an image.
struct Image {
  std::int32_t first = 0;
  std::int32_t rows = 0;
};

// Rows of one sequence: p0, p0 + 1, ...
struct Chunk {
  std::int32_t p0;
  std::int32_t rows;
  Image image{};
};

void add_chunk(Recipe& recipe, std::int32_t stream, const Chunk& chunk) {
  const Image& image = chunk.image;
  for (std::int32_t i = 0; i < chunk.rows; ++i) {
    const bool inside = i >= image.first && i < image.first + image.rows;
    recipe.rows.push_back(
        {stream, chunk.p0 + i, inside ? chunk.p0 + image.first + image.rows - 1 : RowAt::kOwn});
  }
  recipe.sequence_rows.push_back(chunk.rows);
  recipe.passes_hi = recipe.passes_hi || image.rows > 0;
}

CaseSpec prefill(std::string name, WindowRowsShape shape, const std::vector<Chunk>& chunks) {
  CaseSpec made;
  shape.form = Form::kPrefill;
  made.name = std::move(name);
  made.recipe.shape = shape;
  for (std::size_t i = 0; i < chunks.size(); ++i) {
    add_chunk(made.recipe, static_cast<std::int32_t>(i), chunks[i]);
  }
  if (shape.softcap == Switch::kOn) made.recipe.softcap = kCap;
  return made;
}

WindowRowsShape gemma_shape(Arith arith, Switch p32) {
  WindowRowsShape shape;
  shape.form = Form::kPrefill;
  shape.head_dim = 256;
  shape.gqa_ratio = 2;
  shape.window = kWindow;
  shape.kv_layout = {KvLayoutKind::kRing, kRing};
  shape.p32 = p32;
  shape.arith = arith;
  return shape;
}

// The served cases: in full, or cut to two blocks of rows through one KV head.
class Served {
 public:
  Served(CaseSize size, Arith arith) : size_(size), arith_(arith) {}

  std::vector<CaseSpec> cases() const {
    std::vector<CaseSpec> made;
    for (const std::int32_t p0 : {0, 1'300, 5'000}) made.push_back(gemma(p0));
    made.push_back(bf16_weights());
    made.push_back(no_window());
    made.push_back(several());
    for (const std::uint32_t gqa_ratio : {1U, 2U, 3U, 5U, 7U, 8U, 12U, 16U, 32U}) {
      made.push_back(ratio(gqa_ratio));
    }
    return made;
  }

 private:
  bool full() const { return size_ == CaseSize::kFull; }
  std::string named(std::string_view words) const {
    return std::string(words) + suffix_of(size_, arith_);
  }

  // The chunk at 1,300 holds an image; the one at 5,000 wraps the ring.
  CaseSpec gemma(std::int32_t p0) const {
    Chunk chunk{p0, full() ? 512 : 70};
    if (p0 == 1'300) chunk.image = full() ? Image{40, 261} : Image{10, 41};
    CaseSpec made = prefill(
        named("12B sliding prefill of " + std::to_string(chunk.rows) + " at " + std::to_string(p0) +
              (chunk.image.rows > 0 ? " with an image" : "") + ", p32"),
        gemma_shape(arith_, Switch::kOn), {chunk});
    made.recipe.kv_heads = full() ? 8 : 1;
    made.recipe.seed = static_cast<std::uint64_t>(20 + p0);
    made.cuts = p0 == 1'300 && full() ? Cuts::kEveryResidue : Cuts::kFew;
    if (p0 != 5'000 || !full()) made.twins = Twins::kGenericAndForm;
    return made;
  }

  CaseSpec bf16_weights() const {
    CaseSpec made = prefill(
        named(full() ? "31B sliding prefill of 333 at 2000" : "31B sliding prefill of 77 at 2000"),
        gemma_shape(arith_, Switch::kOff), {{2'000, full() ? 333 : 77}});
    made.recipe.kv_heads = full() ? 16 : 1;
    made.recipe.seed = 31;
    made.twins = Twins::kGenericAndForm;
    return made;
  }

  CaseSpec no_window() const {
    WindowRowsShape shape = gemma_shape(arith_, Switch::kOn);
    shape.window = 0;
    shape.kv_layout = {};
    CaseSpec made = prefill(named("12B no-window prefill over a linear cache"), shape,
                            {full() ? Chunk{1'500, 260} : Chunk{130, 66}});
    made.recipe.kv_heads = full() ? 8 : 1;
    made.recipe.seed = 29;
    made.twins = Twins::kGenericAndForm;
    return made;
  }

  CaseSpec several() const {
    WindowRowsShape shape = gemma_shape(arith_, Switch::kOff);
    shape.head_dim = 128;
    shape.gqa_ratio = 4;
    const std::vector<Chunk> chunks =
        full() ? std::vector<Chunk>{{0, 1},
                                    {777, 130, {60, 20}},
                                    {4'095, 64},
                                    {63, 65, {0, 65}},
                                    {1'024, 127}}
               : std::vector<Chunk>{{0, 1}, {777, 70, {60, 8}}, {4'095, 17}, {63, 16, {0, 16}}};
    CaseSpec made =
        prefill(named("prefill of " + std::to_string(chunks.size()) + " sequences"), shape, chunks);
    made.recipe.kv_heads = full() ? 4 : 1;
    made.recipe.scale = 0.3F;
    made.recipe.seed = 44;
    return made;
  }

  CaseSpec ratio(std::uint32_t gqa_ratio) const {
    WindowRowsShape shape = gemma_shape(arith_, gqa_ratio % 2 == 0 ? Switch::kOn : Switch::kOff);
    shape.head_dim = 128;
    shape.gqa_ratio = gqa_ratio;
    shape.window = full() ? kWindow : 200;
    shape.kv_layout = {};
    CaseSpec made =
        prefill(named("ratio " + std::to_string(gqa_ratio) + " prefill"), shape,
                full() ? std::vector<Chunk>{{1'200, 100}, {0, 70}} : std::vector<Chunk>{{280, 18}});
    made.recipe.kv_heads = full() ? 2 : 1;
    made.recipe.scale = 0.5F;
    made.recipe.seed = 2'000 + gqa_ratio;
    made.twins = Twins::kGenericAndForm;
    return made;
  }

  CaseSize size_;
  Arith arith_;
};

// One small shape. Its chunks begin on, below and above edges of tiles, and have rows on, below and
// above the sizes of bands and blocks.
struct Ragged {
  std::uint32_t head_dim;
  std::uint32_t gqa_ratio;
  std::uint32_t window;
  KvLayout layout;
  Dtype dtype;
  Switch p32;
  Switch softcap;
  Switch sinks;
  Switch checked = Switch::kOff;
};

constexpr KvLayout kLinear = {};
constexpr KvLayout ring(std::uint32_t length) { return {KvLayoutKind::kRing, length}; }
constexpr KvLayout paged(std::uint32_t page) { return {KvLayoutKind::kPaged, page}; }
constexpr Switch kOn = Switch::kOn;
constexpr Switch kOff = Switch::kOff;

constexpr Ragged kRagged[] = {
    {64, 1, 0, kLinear, Dtype::kBf16, kOff, kOff, kOff},
    {64, 2, 33, ring(97), Dtype::kF16, kOn, kOn, kOn},
    {80, 3, 64, paged(16), Dtype::kF16, kOff, kOff, kOn},
    {96, 1, 65, ring(200), Dtype::kBf16, kOn, kOff, kOff},
    {112, 2, 1, kLinear, Dtype::kBf16, kOff, kOn, kOff},
    {128, 5, 63, paged(64), Dtype::kBf16, kOn, kOff, kOff},
    {192, 1, 100, ring(164), Dtype::kF16, kOff, kOff, kOff},
    {256, 3, 0, kLinear, Dtype::kBf16, kOff, kOff, kOn},
    {512, 1, 70, ring(134), Dtype::kBf16, kOn, kOff, kOff},
    {512, 2, 0, kLinear, Dtype::kF16, kOff, kOn, kOff},
    // `checked` builds of the second and the third, whose bits they have.
    {64, 2, 33, ring(97), Dtype::kF16, kOn, kOn, kOn, kOn},
    {80, 3, 64, paged(16), Dtype::kF16, kOff, kOff, kOn, kOn},
};
// What a quick sweep keeps of them: with the wide ratios every head_dim, ratio, type, layout and
// option, once.
constexpr std::size_t kQuickRagged[] = {1, 2, 3, 4, 5, 6, 7, 8, 10};
// And of tile64, whose source tile64_ex2 is with another exponential: both types, every layout and
// option.
constexpr std::size_t kQuickRaggedTile64[] = {1, 2, 5, 10};
constexpr std::uint32_t kWidest = 512;
constexpr std::size_t kLaidOut = 1;  // In a quick sweep, one case of all in every layout.

// Ratios of which few rows fill a block of 64 (row, query head) pairs. All but the first two are
// shapes of decodes too, so that the decode form is one kernel for both.
constexpr Ragged kWideRatios[] = {
    {64, 7, 70, kLinear, Dtype::kBf16, kOff, kOff, kOff},
    {64, 8, 65, ring(80), Dtype::kF16, kOn, kOff, kOff},
    {64, 12, 0, kLinear, Dtype::kF16, kOn, kOn, kOn},
    {112, 16, 0, kLinear, Dtype::kF16, kOff, kOff, kOff},
    {80, 32, 0, kLinear, Dtype::kF16, kOff, kOff, kOff},
};
// Over an edge of tiles, and of blocks: 11 rows are two blocks of ratio 7, and six of ratio 32.
constexpr Chunk kWideChunks[] = {{57, 11}, {0, 1}};
constexpr Chunk kWideWindowChunks[] = {{122, 11}, {0, 1}};

constexpr Chunk kEdges[] = {{0, 1},   {0, 15},   {63, 16, {3, 9}},  {64, 17, {0, 17}},
                            {65, 63}, {127, 64}, {191, 65, {60, 5}}};

CaseSpec ragged(const Ragged& small, Arith arith, std::span<const Chunk> chunks) {
  WindowRowsShape shape;
  shape.form = Form::kPrefill;
  shape.head_dim = small.head_dim;
  shape.gqa_ratio = small.gqa_ratio;
  shape.window = small.window;
  shape.kv_layout = small.layout;
  shape.dtype = small.dtype;
  shape.p32 = small.p32;
  shape.softcap = small.softcap;
  shape.sinks = small.sinks;
  shape.checked = small.checked;
  shape.arith = arith;
  CaseSpec made = prefill("ragged " + name_of_shape(shape), shape, {chunks.begin(), chunks.end()});
  made.recipe.scale = small.gqa_ratio % 2 == 0 ? 1.0F : 0.7F;
  made.recipe.order =
      small.head_dim % 64 == 0 ? CacheOrder::kPositionsFirst : CacheOrder::kHeadsFirst;
  made.recipe.padding = small.gqa_ratio % 3 == 0 ? 8 : 0;
  made.recipe.unseen = small.gqa_ratio % 2 == 0 ? Unseen::kNan : Unseen::kStale;
  made.recipe.seed = 100 + small.head_dim + small.gqa_ratio;
  return made;
}

CaseSpec ragged_edges(const Ragged& small, Arith arith) {
  // Wide heads cost most of the work and show no other edge of the rows.
  const std::span<const Chunk> edges =
      small.head_dim <= 128 ? std::span<const Chunk>(kEdges) : std::span(kEdges).last(3);
  CaseSpec made = ragged(small, arith, edges);
  const bool all = small.head_dim <= 80 && small.checked == kOff;
  made.twins = all ? Twins::kAll : Twins::kGenericAndForm;
  if (small.head_dim == kWidest) made.quick_twins = Twins::kGenericAndForm;
  if (arith == Arith::kTile64 || small.checked == kOn) made.quick_twins = Twins::kNone;
  return made;
}

CaseSpec wide_ratio(const Ragged& small, Arith arith) {
  CaseSpec made = ragged(small, arith, small.window > 0 ? kWideWindowChunks : kWideChunks);
  made.twins = Twins::kGenericAndForm;
  made.quick_twins = arith == Arith::kTile64 ? Twins::kNone : Twins::kGenericAndForm;
  // The arithmetics lay rows and heads out in blocks by one header.
  const bool widest = &small == &kWideRatios[std::size(kWideRatios) - 1];
  if (arith == Arith::kTile64Ex2 || widest) made.sweep = Sweep::kQuick;
  return made;
}

// The chunk that is cut at every residue modulo 64 and run row by row, on the host too.
CaseSpec cut_everywhere(Switch p32, Arith arith) {
  WindowRowsShape shape;
  shape.head_dim = 64;
  shape.gqa_ratio = 1;
  shape.window = 80;
  shape.kv_layout = {KvLayoutKind::kRing, 160};
  shape.p32 = p32;
  shape.arith = arith;
  shape.form = Form::kPrefill;
  CaseSpec made = prefill("cut everywhere " + name_of_shape(shape), shape, {{100, 76, {65, 4}}});
  made.recipe.seed = 64;
  made.cuts = Cuts::kEveryResidue;
  made.twins = Twins::kGenericAndForm;
  if (p32 == Switch::kOff && arith != Arith::kTile64) made.sweep = Sweep::kQuick;
  return made;
}

}  // namespace

std::vector<CaseSpec> served_prefills(CaseSize size, Arith arith) {
  return Served(size, arith).cases();
}

std::vector<CaseSpec> ragged_prefills(Arith arith) {
  std::vector<CaseSpec> cases;
  for (const Ragged& small : kRagged) cases.push_back(ragged_edges(small, arith));
  const std::span<const std::size_t> quick = arith == Arith::kTile64
                                                 ? std::span<const std::size_t>(kQuickRaggedTile64)
                                                 : std::span<const std::size_t>(kQuickRagged);
  for (const std::size_t place : quick) cases[place].sweep = Sweep::kQuick;
  cases[kLaidOut].quick_twins = Twins::kAll;
  for (const Ragged& small : kWideRatios) cases.push_back(wide_ratio(small, arith));
  for (const Switch p32 : {Switch::kOff, Switch::kOn}) cases.push_back(cut_everywhere(p32, arith));
  return cases;
}

}  // namespace broach::contract::window_rows
