#include "tests/reference/chunk256.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <span>

#include "tests/reference/portable_exponential.hpp"
#include "tools/contract/harness/number.hpp"

namespace broach::test {
namespace {

using contract::float_of;
using contract::round_to;
using contract::window_rows::Problem;

constexpr std::int32_t kChunk = 256;
constexpr std::int32_t kRun = 32;
constexpr std::int32_t kLaneDims = 8;

struct Partial {
  float greatest = -std::numeric_limits<float>::infinity();
  float sum = 0;
  std::vector<float> numerator;
};

class Reference {
 public:
  Reference(const Problem& problem, float (*exponential)(float), ReferenceFault fault)
      : p_(problem), exp_(exponential), fault_(fault) {}

  void row(std::int32_t row, std::int32_t head, std::uint16_t* out) const;

 private:
  std::int32_t kv_head_of(std::int32_t head) const {
    const auto ratio = static_cast<std::int32_t>(p_.shape.gqa_ratio);
    if (fault_ == ReferenceFault::kRatioOffByOne) return ((head + 1) / ratio) % p_.kv_heads;
    return head / ratio;
  }
  std::int32_t first_of(std::int32_t row) const {
    const std::int32_t first = p_.first_key(row);
    return fault_ == ReferenceFault::kWindowEarly ? std::max(0, first - 1) : first;
  }
  float score(const std::uint16_t* q, const std::uint16_t* k) const;
  Partial chunk(std::int32_t row, std::int32_t head, std::int32_t from, std::int32_t to) const;
  bool merge(std::span<const Partial> partials, std::int32_t head, std::uint16_t* out) const;
  void again_in_double(std::int32_t row, std::int32_t head, std::uint16_t* out) const;

  const Problem& p_;
  float (*exp_)(float);
  ReferenceFault fault_;
};

float Reference::score(const std::uint16_t* q, const std::uint16_t* k) const {
  const std::int32_t dims = p_.head_dim();
  std::array<float, 64> lanes{};
  const auto lane_count = std::bit_ceil(static_cast<std::uint32_t>(dims / kLaneDims));
  for (std::int32_t d = 0; d < dims; ++d) {
    float& lane = lanes[static_cast<std::size_t>(d / kLaneDims)];
    lane = std::fma(float_of(q[d], p_.shape.dtype), float_of(k[d], p_.shape.dtype), lane);
  }
  for (std::uint32_t mask = lane_count / 2; mask > 0; mask /= 2) {
    for (std::uint32_t lane = 0; lane < mask; ++lane) lanes[lane] += lanes[lane + mask];
  }
  if (fault_ == ReferenceFault::kNoScale) return lanes[0];
  const float s = p_.scale * lanes[0];
  if (p_.shape.softcap == Switch::kOff) return s;
  return p_.softcap * portable_tanh(s / p_.softcap);
}

Partial Reference::chunk(std::int32_t row, std::int32_t head, std::int32_t from,
                         std::int32_t to) const {
  const auto dims = static_cast<std::size_t>(p_.head_dim());
  const std::int32_t kv_head = kv_head_of(head);
  const std::int32_t origin = from / kChunk * kChunk;
  std::array<float, kChunk> scores{};
  Partial partial;
  partial.numerator.assign(dims, 0.0F);
  bool has_nan = false;
  for (std::int32_t j = from; j <= to; ++j) {
    const float s = score(p_.q.data() + p_.q_at(row, head), p_.k.data() + p_.k_at(row, j, kv_head));
    scores[static_cast<std::size_t>(j - origin)] = s;
    has_nan = has_nan || std::isnan(s);
    partial.greatest = std::max(partial.greatest, s);
  }
  if (has_nan) partial.greatest = std::numeric_limits<float>::quiet_NaN();
  const std::int32_t runs = fault_ == ReferenceFault::kLostRun ? 7 : 8;
  for (std::int32_t run = 0; run < runs; ++run) {
    const std::int32_t run_from = std::max(from, origin + run * kRun);
    const std::int32_t run_to = std::min(to, origin + run * kRun + kRun - 1);
    float sum = 0;
    std::vector<float> numerator(dims, 0.0F);
    for (std::int32_t j = run_from; j <= run_to; ++j) {
      const float weight = exp_(scores[static_cast<std::size_t>(j - origin)] - partial.greatest);
      const std::uint16_t* v = p_.v.data() + p_.v_at(row, j, kv_head);
      sum += weight;
      for (std::size_t d = 0; d < dims; ++d) {
        numerator[d] = std::fma(weight, float_of(v[d], p_.shape.dtype), numerator[d]);
      }
    }
    partial.sum += sum;
    for (std::size_t d = 0; d < dims; ++d) partial.numerator[d] += numerator[d];
  }
  return partial;
}

// Writes the outputs; false where one of them is NaN or infinite.
bool Reference::merge(std::span<const Partial> partials, std::int32_t head,
                      std::uint16_t* out) const {
  const auto dims = static_cast<std::size_t>(p_.head_dim());
  const bool sinks = p_.shape.sinks == Switch::kOn;
  float greatest =
      sinks ? p_.sinks[static_cast<std::size_t>(head)] : -std::numeric_limits<float>::infinity();
  for (const Partial& partial : partials) {
    if (std::isnan(partial.greatest)) return false;
    greatest = std::max(greatest, partial.greatest);
  }
  // A mask where a branch would do: GCC 12.2 at -O2 takes the branch that changes nothing.
  const std::uint32_t kept = fault_ == ReferenceFault::kTruncatedSums ? 0xffff0000U : 0xffffffffU;
  const auto truncated = [&](float x) {
    return std::bit_cast<float>(std::bit_cast<std::uint32_t>(x) & kept);
  };
  float sum = 0;
  std::vector<float> numerator(dims, 0.0F);
  for (const Partial& partial : partials) {
    const float factor =
        fault_ == ReferenceFault::kMergeUnscaled ? 1.0F : exp_(partial.greatest - greatest);
    sum = truncated(std::fma(factor, partial.sum, sum));
    for (std::size_t d = 0; d < dims; ++d) {
      numerator[d] = truncated(std::fma(factor, partial.numerator[d], numerator[d]));
    }
  }
  if (sinks) sum += exp_(p_.sinks[static_cast<std::size_t>(head)] - greatest);
  bool finite = true;
  for (std::size_t d = 0; d < dims; ++d) {
    const float quotient = numerator[d] / sum;
    out[d] = round_to(static_cast<double>(quotient), p_.shape.dtype);
    finite = finite && std::isfinite(float_of(out[d], p_.shape.dtype));
  }
  return finite;
}

void Reference::again_in_double(std::int32_t row, std::int32_t head, std::uint16_t* out) const {
  const auto dims = static_cast<std::size_t>(p_.head_dim());
  const std::int32_t kv_head = kv_head_of(head);
  const std::uint16_t* q = p_.q.data() + p_.q_at(row, head);
  std::vector<double> scores;
  double greatest = -std::numeric_limits<double>::infinity();
  if (p_.shape.sinks == Switch::kOn) {
    greatest = static_cast<double>(p_.sinks[static_cast<std::size_t>(head)]);
  }
  for (std::int32_t j = first_of(row); j <= p_.positions[static_cast<std::size_t>(row)]; ++j) {
    const std::uint16_t* k = p_.k.data() + p_.k_at(row, j, kv_head);
    double dot = 0;
    for (std::size_t d = 0; d < dims; ++d) {
      dot += static_cast<double>(float_of(q[d], p_.shape.dtype)) *
             static_cast<double>(float_of(k[d], p_.shape.dtype));
    }
    double s = static_cast<double>(p_.scale) * dot;
    if (p_.shape.softcap == Switch::kOn) {
      const double cap = static_cast<double>(p_.softcap);
      s = cap * std::tanh(s / cap);
    }
    scores.push_back(s);
    if (!(scores.back() <= greatest)) greatest = scores.back();
    if (std::isnan(greatest)) break;
  }
  double sum = 0;
  std::vector<double> numerator(dims, 0.0);
  std::int32_t j = first_of(row);
  for (const double s : scores) {
    const double weight = std::exp(s - greatest);
    const std::uint16_t* v = p_.v.data() + p_.v_at(row, j++, kv_head);
    sum += weight;
    for (std::size_t d = 0; d < dims; ++d) {
      numerator[d] += weight * static_cast<double>(float_of(v[d], p_.shape.dtype));
    }
  }
  if (p_.shape.sinks == Switch::kOn) {
    sum += std::exp(static_cast<double>(p_.sinks[static_cast<std::size_t>(head)]) - greatest);
  }
  for (std::size_t d = 0; d < dims; ++d) {
    out[d] = round_to(numerator[d] / sum, p_.shape.dtype);
  }
}

void Reference::row(std::int32_t row, std::int32_t head, std::uint16_t* out) const {
  const std::int32_t last = p_.positions[static_cast<std::size_t>(row)];
  std::vector<Partial> partials;
  for (std::int32_t from = first_of(row); from <= last; from = (from / kChunk + 1) * kChunk) {
    partials.push_back(chunk(row, head, from, std::min(last, from / kChunk * kChunk + kChunk - 1)));
  }
  if (!merge(partials, head, out)) again_in_double(row, head, out);
}

}  // namespace

std::vector<std::uint16_t> chunk256_reference(const Problem& problem, float (*exponential)(float),
                                              ReferenceFault fault) {
  std::vector<std::uint16_t> out(problem.out_elems());
  const Reference reference(problem, exponential, fault);
  for (std::int32_t row = 0; row < problem.rows; ++row) {
    for (std::int32_t head = 0; head < problem.heads(); ++head) {
      reference.row(row, head, out.data() + problem.out_at(row, head));
    }
  }
  return out;
}

float library_exponential(float x) { return static_cast<float>(std::exp(static_cast<double>(x))); }

}  // namespace broach::test
