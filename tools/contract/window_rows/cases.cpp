#include "tools/contract/window_rows/cases.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <span>
#include <string_view>

namespace broach::contract::window_rows {
namespace {

constexpr std::int32_t kWindow = 1024;
constexpr std::int32_t kRing = 1536;
constexpr std::int32_t kStreams = 3;

// Cases were named before there was a second arithmetic.
std::string_view words_of(Arith arith) {
  switch (arith) {
    case Arith::kTile64:
      return " tile64";
    case Arith::kMma32:
      return " mma32";
    case Arith::kTile64Ex2:
      return " tile64_ex2";
    case Arith::kDefault:
    case Arith::kChunk256:
      break;
  }
  return "";
}

std::string name_of_layout(const KvLayout& layout) {
  switch (layout.kind) {
    case KvLayoutKind::kLinear:
      return "linear";
    case KvLayoutKind::kRing:
      return "ring(" + std::to_string(layout.length) + ")";
    case KvLayoutKind::kPaged:
      return "paged(" + std::to_string(layout.length) + ")";
  }
  return "unknown";
}

// Rows over streams in turn, each stream's rows going back from its newest position in steps that
// keep all of them within `room` positions, as a ring longer than its window allows.
std::vector<RowAt> spread(std::int32_t rows, std::span<const std::int32_t> newest,
                          std::int32_t room) {
  const auto streams = static_cast<std::int32_t>(newest.size());
  const std::int32_t a_stream = (rows + streams - 1) / streams;
  const std::int32_t step = room / std::max(1, a_stream);
  std::vector<RowAt> spread_rows;
  for (std::int32_t row = 0; row < rows; ++row) {
    const std::int32_t stream = row % streams;
    const std::int32_t position = newest[static_cast<std::size_t>(stream)] - row / streams * step;
    spread_rows.push_back({stream, std::max(0, position)});
  }
  return spread_rows;
}

WindowRowsShape gemma_shape(Arith arith) {
  WindowRowsShape shape;
  shape.head_dim = 256;
  shape.gqa_ratio = 2;
  shape.window = kWindow;
  shape.kv_layout = {KvLayoutKind::kRing, kRing};
  shape.arith = arith;
  return shape;
}

CaseSpec gemma(std::string name, std::int32_t rows, std::int32_t kv_heads, CaseSize size,
               Arith arith) {
  // Positions whose rings have wrapped 26 times, 4 times, and just once.
  static constexpr std::array<std::int32_t, kStreams> kNewest = {39'999, 6'143, 1'600};
  CaseSpec made;
  made.name = name + " sliding decode of " + std::to_string(rows) + suffix_of(size, arith);
  made.recipe.shape = gemma_shape(arith);
  made.recipe.kv_heads = size == CaseSize::kFull ? kv_heads : 1;
  made.recipe.rows = spread(rows, kNewest, kRing - kWindow);
  made.recipe.seed = static_cast<std::uint64_t>(rows + 100 * kv_heads);
  return made;
}

CaseSpec no_window(CaseSize size, Arith arith) {
  static constexpr std::array<std::int32_t, kStreams> kFull = {8'191, 3'000, 511};
  static constexpr std::array<std::int32_t, kStreams> kCut = {1'100, 600, 255};
  CaseSpec made;
  made.name = "12B no-window decode of 5 over a linear cache" + suffix_of(size, arith);
  made.recipe.shape = gemma_shape(arith);
  made.recipe.shape.window = 0;
  made.recipe.shape.kv_layout = {};
  made.recipe.kv_heads = size == CaseSize::kFull ? 8 : 1;
  made.recipe.rows = spread(5, size == CaseSize::kFull ? kFull : kCut, 64);
  made.recipe.seed = 9;
  return made;
}

CaseSpec ratio(std::uint32_t gqa_ratio, CaseSize size, Arith arith) {
  static constexpr std::array<std::int32_t, 2> kFull = {4'500, 1'023};
  static constexpr std::array<std::int32_t, 2> kCut = {700, 256};
  CaseSpec made;
  made.name = "ratio " + std::to_string(gqa_ratio) + " decode of 4" + suffix_of(size, arith);
  made.recipe.shape = gemma_shape(arith);
  made.recipe.shape.head_dim = 128;
  made.recipe.shape.gqa_ratio = gqa_ratio;
  made.recipe.shape.window = size == CaseSize::kFull ? 1024 : 300;
  made.recipe.shape.kv_layout = {};
  made.recipe.kv_heads = size == CaseSize::kFull ? 8 : 1;
  made.recipe.scale = 0.5F;
  made.recipe.rows = spread(4, size == CaseSize::kFull ? kFull : kCut, 40);
  made.recipe.seed = 1000 + gqa_ratio;
  made.twins = Twins::kGenericAndForm;
  return made;
}

// One small shape with rows on every edge of its tiles and of its window.
struct Ragged {
  std::uint32_t head_dim;
  std::uint32_t gqa_ratio;
  std::uint32_t window;
  KvLayout layout;
  Dtype dtype;
  std::int32_t kv_heads;
  Switch softcap = Switch::kOff;
  Switch sinks = Switch::kOff;
  Switch p32 = Switch::kOff;
  Switch checked = Switch::kOff;
};

constexpr KvLayout kLinear = {};
constexpr KvLayout ring(std::uint32_t length) { return {KvLayoutKind::kRing, length}; }
constexpr KvLayout paged(std::uint32_t page) { return {KvLayoutKind::kPaged, page}; }

// Every head_dim, every ratio of the contract, both types, windows around each edge.
constexpr Ragged kRagged[] = {
    {64, 1, 0, kLinear, Dtype::kBf16, 3},      {64, 8, 32, ring(48), Dtype::kF16, 2},
    {80, 2, 33, ring(40), Dtype::kBf16, 1},    {80, 32, 0, kLinear, Dtype::kF16, 1},
    {96, 3, 256, ring(300), Dtype::kF16, 2},   {96, 12, 1, kLinear, Dtype::kBf16, 1},
    {112, 5, 255, ring(256), Dtype::kBf16, 1}, {112, 16, 0, kLinear, Dtype::kF16, 1},
    {128, 7, 257, ring(257), Dtype::kF16, 1},  {128, 4, 512, kLinear, Dtype::kBf16, 2},
    {192, 8, 300, ring(512), Dtype::kBf16, 1}, {192, 1, 0, kLinear, Dtype::kF16, 2},
    {256, 2, 100, ring(130), Dtype::kF16, 2},  {256, 16, 0, kLinear, Dtype::kBf16, 1},
    {512, 3, 64, ring(64), Dtype::kBf16, 1},   {512, 8, 0, kLinear, Dtype::kF16, 1},
};
// Pages, and what a shape can switch on.
constexpr Switch kOn = Switch::kOn;
constexpr Switch kOff = Switch::kOff;
constexpr Ragged kRaggedOptions[] = {
    {64, 2, 0, paged(16), Dtype::kBf16, 2},
    {128, 8, 257, paged(64), Dtype::kF16, 1},
    {256, 2, 100, paged(256), Dtype::kBf16, 1},
    {64, 2, 257, ring(290), Dtype::kF16, 2, kOn, kOn},
    {128, 4, 255, kLinear, Dtype::kBf16, 1, kOff, kOn},
    {256, 1, 0, kLinear, Dtype::kBf16, 2, kOn, kOff},
    {128, 3, 200, ring(256), Dtype::kBf16, 1, kOff, kOff, kOn},
    {64, 12, 0, kLinear, Dtype::kF16, 1, kOn, kOn, kOn},
    // `checked` builds of the first and the fourth, whose bits they have.
    {64, 2, 0, paged(16), Dtype::kBf16, 2, kOff, kOff, kOff, kOn},
    {64, 2, 257, ring(290), Dtype::kF16, 2, kOn, kOn, kOff, kOn},
};

// What a quick sweep keeps of each: with the Gemma-4-like decode every head_dim, ratio, type,
// layout and option, once.
constexpr std::size_t kQuickRagged[] = {3, 4, 5, 6, 7, 8, 11, 14};
constexpr std::size_t kQuickOptions[] = {0, 1, 3, 6, 7, 8};
// tile64 is tile64_ex2's source with another exponential: where a quick sweep has tried that on
// every shape, it tries this one on both types, every layout, the widest ratio and every option.
constexpr std::size_t kQuickRaggedTile64[] = {3, 4};
constexpr std::size_t kQuickOptionsTile64[] = {0, 7, 8};
constexpr std::uint32_t kLaidOutHeadDim = 96;  // In a quick sweep, one case of all in every layout.

template <std::size_t kCount>
bool holds(const std::size_t (&places)[kCount], std::size_t place) {
  return std::find(std::begin(places), std::end(places), place) != std::end(places);
}

// Last positions one below, at and one above each multiple of 32, 64 and 256 that matters.
constexpr std::int32_t kEdges[] = {0,   1,   15,  16,  31,  32,  33,  62,  63,  64,
                                   127, 254, 255, 256, 257, 319, 510, 511, 512, 513};

std::vector<RowAt> edge_rows(const WindowRowsShape& shape) {
  std::vector<RowAt> rows;
  if (shape.kv_layout.kind == KvLayoutKind::kRing) {
    // A ring holds one stretch of a stream: each edge gets a stream of its own.
    for (std::int32_t stream = 0; stream < static_cast<std::int32_t>(std::size(kEdges)); ++stream) {
      rows.push_back({stream, kEdges[stream] + (stream % 2 == 0 ? 0 : 1'024)});
    }
    return rows;
  }
  for (const std::int32_t edge : kEdges) rows.push_back({edge % 2, edge});
  return rows;
}

CaseSpec ragged(const Ragged& small, Arith arith) {
  CaseSpec made;
  WindowRowsShape& shape = made.recipe.shape;
  shape.head_dim = small.head_dim;
  shape.gqa_ratio = small.gqa_ratio;
  shape.window = small.window;
  shape.kv_layout = small.layout;
  shape.dtype = small.dtype;
  shape.softcap = small.softcap;
  shape.sinks = small.sinks;
  shape.p32 = small.p32;
  shape.checked = small.checked;
  shape.arith = arith;
  if (shape.softcap == kOn) made.recipe.softcap = 5.0F;
  made.name = "ragged " + name_of_shape(shape);
  made.recipe.kv_heads = small.kv_heads;
  made.recipe.rows = edge_rows(shape);
  made.recipe.scale = small.gqa_ratio % 2 == 0 ? 1.0F : 0.7F;
  made.recipe.order =
      small.head_dim % 64 == 0 ? CacheOrder::kPositionsFirst : CacheOrder::kHeadsFirst;
  made.recipe.padding = small.gqa_ratio % 3 == 0 ? 8 : 0;
  made.recipe.unseen = small.gqa_ratio % 2 == 0 ? Unseen::kNan : Unseen::kStale;
  made.recipe.seed = small.head_dim + small.gqa_ratio;
  if (shape.checked == kOn) made.twins = Twins::kGenericAndForm;
  return made;
}

}  // namespace

std::string name_of_shape(const WindowRowsShape& shape) {
  const auto with = [](Switch option, const char* words) {
    return option == Switch::kOn ? std::string(words) : std::string();
  };
  return std::string(shape.form == Form::kPrefill ? "prefill " : "") +
         (shape.dtype == Dtype::kBf16 ? "bf16" : "f16") + " D" + std::to_string(shape.head_dim) +
         " G" + std::to_string(shape.gqa_ratio) + " W" + std::to_string(shape.window) + " " +
         name_of_layout(shape.kv_layout) + with(shape.p32, " p32") +
         with(shape.softcap, " softcap") + with(shape.sinks, " sinks") +
         with(shape.checked, " checked") + std::string(words_of(shape.arith));
}

std::string suffix_of(CaseSize size, Arith arith) {
  const std::string words(words_of(arith));
  return std::string(size == CaseSize::kCut ? ", cut" : "") + (words.empty() ? words : "," + words);
}

CaseSpec gemma_decode(std::int32_t rows, CaseSize size, Arith arith) {
  return gemma("12B", rows, 8, size, arith);
}

std::vector<CaseSpec> served_decodes(CaseSize size, Arith arith) {
  std::vector<CaseSpec> cases;
  for (const std::int32_t rows : {1, 3, 17, 64}) {
    cases.push_back(gemma("12B", rows, 8, size, arith));
    if (rows == 3 && arith != Arith::kTile64) cases.back().sweep = Sweep::kQuick;
    if (size == CaseSize::kFull) cases.push_back(gemma("31B", rows, 16, size, arith));
  }
  cases.push_back(no_window(size, arith));
  for (const std::uint32_t gqa_ratio : {1U, 2U, 3U, 5U, 7U, 8U, 12U, 16U, 32U}) {
    cases.push_back(ratio(gqa_ratio, size, arith));
  }
  return cases;
}

std::vector<CaseSpec> ragged_decodes(Arith arith) {
  std::vector<CaseSpec> cases;
  const auto add = [&](const Ragged& small, bool quick) {
    if (small.p32 == kOn && arith == Arith::kChunk256) return;  // Keeps P in fp32 always.
    cases.push_back(ragged(small, arith));
    if (quick) cases.back().sweep = Sweep::kQuick;
    if (arith == Arith::kTile64 || small.checked == kOn) cases.back().quick_twins = Twins::kNone;
    if (small.head_dim == kLaidOutHeadDim) cases.back().quick_twins = Twins::kAll;
  };
  const bool tile64 = arith == Arith::kTile64;
  for (std::size_t i = 0; i < std::size(kRagged); ++i) {
    add(kRagged[i], tile64 ? holds(kQuickRaggedTile64, i) : holds(kQuickRagged, i));
  }
  for (std::size_t i = 0; i < std::size(kRaggedOptions); ++i) {
    add(kRaggedOptions[i], tile64 ? holds(kQuickOptionsTile64, i) : holds(kQuickOptions, i));
  }
  return cases;
}

CaseSpec made_decode(const WindowRowsShape& shape, std::int32_t rows, std::int32_t kv_heads,
                     std::int32_t position) {
  CaseSpec made;
  made.name = name_of_shape(shape) + " decode of " + std::to_string(rows);
  made.recipe.shape = shape;
  made.recipe.kv_heads = kv_heads;
  std::int32_t room = 64;
  if (shape.kv_layout.kind == KvLayoutKind::kRing) {
    room = static_cast<std::int32_t>(shape.kv_layout.length - shape.window);
  }
  const std::array<std::int32_t, kStreams> newest = {position, position * 2 / 3, position / 3};
  made.recipe.rows = spread(rows, newest, room);
  if (shape.softcap == Switch::kOn) made.recipe.softcap = 50.0F;
  return made;
}

}  // namespace broach::contract::window_rows
