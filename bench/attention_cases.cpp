#include "bench/attention_cases.hpp"

#include <fmt/core.h>

#include <algorithm>

namespace broach::bench {
namespace {

struct Model {
  std::uint32_t head_dim;
  std::int32_t heads;
  std::int32_t kv_heads;
  std::uint32_t window;
};

constexpr Model kGemma12b{256, 16, 8, 1024};
constexpr Model kGemma31b{256, 32, 16, 1024};
constexpr Model kGemmaGlobal{512, 16, 2, 0};
constexpr Model kLlama{128, 64, 8, 0};
constexpr Model kLlamaSmall{128, 32, 8, 0};

WindowRowsShape shape_of(const Model& model, Form form, Arith arith) {
  WindowRowsShape shape;
  shape.head_dim = model.head_dim;
  shape.gqa_ratio = static_cast<std::uint32_t>(model.heads / model.kv_heads);
  shape.window = model.window;
  shape.form = form;
  shape.arith = arith;
  return shape;
}

std::string model_text(const Model& model) {
  return fmt::format("{}/{} x {}, {}", model.heads, model.kv_heads, model.head_dim,
                     model.window == 0 ? "no window" : fmt::format("window {}", model.window));
}

AttentionCase decode(const Model& model, std::int32_t rows, std::int32_t keys, Arith arith) {
  AttentionCase made{fmt::format("decode {} rows, {}, {} keys", rows, model_text(model), keys),
                     shape_of(model, Form::kDecode, arith), model.kv_heads, rows, keys};
  if (model.window != 0) made.shape.kv_layout = {KvLayoutKind::kRing, 1536};
  return made;
}

AttentionCase prefill(const Model& model, std::int32_t rows, std::int32_t keys, Switch p32,
                      Arith arith) {
  AttentionCase made{fmt::format("prefill {} rows ending at {}, {}, {}", rows, keys,
                                 model_text(model), p32 == Switch::kOn ? "p32" : "16-bit P"),
                     shape_of(model, Form::kPrefill, arith), model.kv_heads, rows, keys};
  made.shape.p32 = p32;
  return made;
}

}  // namespace

double AttentionCase::pairs() const noexcept {
  const auto seen = [&](std::int32_t position) {
    const double all = position + 1.0;
    return shape.window == 0 ? all : std::min(all, static_cast<double>(shape.window));
  };
  if (!is_prefill()) return rows * seen(keys - 1);
  double sum = 0;
  for (std::int32_t row = 0; row < rows; ++row) sum += seen(keys - rows + row);
  return sum;
}

double AttentionCase::operations() const noexcept {
  const double products = shape.p32 == Switch::kOn ? 3.0 : 2.0;
  return 2.0 * products * shape.head_dim * heads() * pairs();
}

double AttentionCase::bytes() const noexcept {
  const std::int32_t last_rows = is_prefill() ? rows : 1;
  const double span =
      shape.window == 0 ? keys
                        : std::min<double>(keys, static_cast<double>(shape.window) + last_rows - 1);
  const double streams = is_prefill() ? 1 : rows;
  const double cache = streams * span * kv_heads * shape.head_dim * 2 * 2;
  return cache + 2.0 * 2 * rows * heads() * shape.head_dim;
}

std::vector<AttentionCase> attention_cases() {
  std::vector<AttentionCase> cases;
  for (const Arith arith : {Arith::kTile64Ex2, Arith::kTile64, Arith::kChunk256}) {
    for (const std::int32_t rows : {1, 4, 16, 64}) {
      cases.push_back(decode(kGemma12b, rows, 8192, arith));
    }
    cases.push_back(decode(kGemma31b, 1, 8192, arith));
    for (const std::int32_t rows : {1, 16}) {
      cases.push_back(decode(kLlama, rows, 32768, arith));
    }
  }
  Model causal = kGemma12b;
  causal.window = 0;
  Model sliding = kLlamaSmall;
  sliding.window = 1024;
  for (const Arith arith : {Arith::kTile64Ex2, Arith::kTile64}) {
    for (const Switch p32 : {Switch::kOff, Switch::kOn}) {
      cases.push_back(prefill(kGemma12b, 512, 8192, p32, arith));
      cases.push_back(prefill(kGemma12b, 8192, 8192, p32, arith));
    }
    for (const Model& model : {causal, kLlamaSmall, sliding, kGemmaGlobal}) {
      cases.push_back(prefill(model, 8192, 8192, Switch::kOff, arith));
    }
  }
  return cases;
}

}  // namespace broach::bench
