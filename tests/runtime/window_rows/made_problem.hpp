#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "specializer/host_model.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/opened_runtime.hpp"
#include "tools/contract/window_rows/kernel.hpp"
#include "tools/contract/window_rows/prefill.hpp"

namespace broach::test {

using contract::Bench;
using contract::Poison;
using contract::window_rows::Kernel;
using contract::window_rows::Problem;
using contract::window_rows::Recipe;
using contract::window_rows::RowAt;

using Outputs = std::vector<std::uint16_t>;

/// A device of this process, over a cache of its own: "host", "host:step=k8", "cuda". Its device is
/// null where there is none.
inline const Bench& bench_of(const std::string& device = "host") {
  static std::map<std::string, OpenedRuntime> opened;
  return opened.try_emplace(device, device).first->second.bench;
}

/// A shape's kernel, or a variant of it, compiled once a process.
inline Kernel kernel_of(const WindowRowsShape& shape, const specializer::Variant& variant = {},
                        const Bench& bench = bench_of()) {
  auto kernel = Kernel::load(bench, shape, variant);
  if (!kernel) FAIL(kernel.error().message << '\n' << kernel.error().detail);
  return *std::move(kernel);
}

/// A decode of these rows through two KV heads.
inline Recipe decode_of(const WindowRowsShape& shape, std::vector<RowAt> rows) {
  Recipe recipe;
  recipe.shape = shape;
  recipe.kv_heads = 2;
  recipe.rows = std::move(rows);
  recipe.scale = 1.5F;
  recipe.softcap = shape.softcap == Switch::kOn ? 5.0F : 0.0F;
  return recipe;
}

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

/// Rows of one sequence of a prefill, from a position on.
struct Chunk {
  std::int32_t p0 = 0;
  std::int32_t rows = 0;
};

/// A prefill of these sequences; rows 5 to 40 of the first see each other where it has an image.
enum class Image : std::uint8_t { kNone, kRows5To40 };
inline Recipe prefill_of(const WindowRowsShape& shape, const std::vector<Chunk>& sequences,
                         Image image = Image::kNone, std::int32_t kv_heads = 1) {
  std::vector<contract::window_rows::PrefillChunk> chunks;
  for (const Chunk& sequence : sequences) {
    const auto stream = static_cast<std::int32_t>(chunks.size());
    chunks.push_back({stream, sequence.p0, sequence.rows, std::nullopt});
  }
  if (image != Image::kNone) chunks.front().image = contract::window_rows::ImageRows{5, 40};
  auto made = contract::window_rows::prefill_of("", shape, kv_heads, chunks);
  REQUIRE(made);
  made->recipe.scale = 1.5F;
  if (shape.softcap == Switch::kOn) made->recipe.softcap = 5.0F;
  return made->recipe;
}

inline Problem made(const Recipe& recipe) {
  auto problem = contract::window_rows::make_problem(recipe);
  if (!problem) FAIL(problem.error().message);
  // A planted fault reads the entry behind a slot's last page: the last slot has one, too.
  if (!problem->page_table.empty()) problem->page_table.push_back(problem->page_table.front());
  return *std::move(problem);
}

/// The same numbers in another layout, or in other slots, or in longer ones.
inline Problem laid_out(Recipe recipe, KvLayout layout) {
  recipe.shape.kv_layout = layout;
  return made(recipe);
}
inline Problem in_slots(Recipe recipe, std::vector<std::int32_t> slot_of_stream,
                        std::int32_t length = 0) {
  recipe.slot_of_stream = std::move(slot_of_stream);
  recipe.length = length;
  return made(recipe);
}

/// The cells that no row sees hold these bits instead.
inline Problem with_unseen(Problem problem, std::uint16_t bits) {
  std::vector<bool> seen(problem.k.size());
  for (std::int32_t row = 0; row < problem.rows; ++row) {
    for (std::int32_t key = problem.first_key(row); key <= problem.last_key(row); ++key) {
      for (std::int32_t head = 0; head < problem.kv_heads; ++head) {
        const auto at = seen.begin() + problem.k_at(row, key, head);
        std::fill(at, at + problem.head_dim(), true);
      }
    }
  }
  for (std::size_t i = 0; i < seen.size(); ++i) {
    if (!seen[i]) problem.k[i] = problem.v[i] = bits;
  }
  return problem;
}

/// A prefill's rows up to their own positions alone, whatever image it has.
inline Problem without_image(Problem problem) {
  problem.passes_hi = false;
  problem.last_keys = problem.positions;
  return problem;
}

/// The same prefill in these pieces: rows first .. first + rows - 1 of the problem each, in this
/// order.
struct Piece {
  std::int32_t first = 0;
  std::int32_t rows = 0;
};
inline std::vector<std::int32_t> rows_of(const std::vector<Piece>& pieces) {
  std::vector<std::int32_t> rows;
  for (const Piece& piece : pieces) {
    for (std::int32_t i = 0; i < piece.rows; ++i) rows.push_back(piece.first + i);
  }
  return rows;
}
inline Problem in_pieces(const Problem& problem, const std::vector<Piece>& pieces) {
  Problem taken = problem.take(rows_of(pieces));
  taken.offsets.assign(1, 0);
  for (const Piece& piece : pieces) taken.offsets.push_back(taken.offsets.back() + piece.rows);
  return taken;
}

/// A prefill's rows as a decode of the same caches.
inline Problem as_decode(const Problem& problem) {
  Problem taken = problem.take(contract::window_rows::first_rows(problem.rows));
  taken.shape.form = Form::kDecode;
  taken.offsets.clear();
  return taken;
}

// Elements of a problem, to be planted: of a row's query head, and of a position of a row's stream.
inline std::span<std::uint16_t> query_at(Problem& p, std::int32_t row, std::int32_t head) {
  return std::span(p.q).subspan(static_cast<std::size_t>(p.q_at(row, head)), p.shape.head_dim);
}
inline std::span<std::uint16_t> key_at(Problem& p, std::int32_t row, std::int32_t position,
                                       std::int32_t kv_head = 0) {
  return std::span(p.k).subspan(static_cast<std::size_t>(p.k_at(row, position, kv_head)),
                                p.shape.head_dim);
}
inline std::span<std::uint16_t> value_at(Problem& p, std::int32_t row, std::int32_t position,
                                         std::int32_t kv_head = 0) {
  return std::span(p.v).subspan(static_cast<std::size_t>(p.v_at(row, position, kv_head)),
                                p.shape.head_dim);
}

inline Outputs run(const Kernel& kernel, const Problem& problem, Poison poison = Poison::kNan) {
  auto out = kernel.run(problem, poison);
  if (!out) FAIL(out.error().message);
  return *std::move(out);
}
inline Outputs run(const contract::window_rows::Decoder& decoder, const Problem& problem,
                   runtime::Device& device = *bench_of().device, Poison poison = Poison::kNan) {
  auto uploaded = contract::window_rows::DeviceProblem::upload(device, problem);
  if (!uploaded) FAIL(uploaded.error().message);
  auto out = uploaded->run(decoder, poison);
  if (!out) FAIL(out.error().message);
  return *std::move(out);
}

/// The outputs of some rows of a batch, one after another.
inline Outputs rows_of(const Problem& problem, const Outputs& out,
                       const std::vector<std::int32_t>& rows) {
  Outputs taken;
  for (const std::int32_t row : rows) {
    const auto from = out.begin() + problem.out_at(row, 0);
    taken.insert(taken.end(), from, from + problem.out_row_stride);
  }
  return taken;
}
inline Outputs row_of(const Problem& problem, const Outputs& out, std::int32_t row) {
  return rows_of(problem, out, {row});
}

inline std::size_t differences(const Outputs& a, const Outputs& b) {
  REQUIRE(a.size() == b.size());
  std::size_t count = 0;
  for (std::size_t i = 0; i < a.size(); ++i) count += a[i] != b[i] ? 1U : 0U;
  return count;
}

/// A chip's outputs are the host's with the chip's MMA step, bit for bit: an infinite value, a
/// query that is NaN, the specialised and the generic kernel.
inline void check_device_bits(const Bench& chip, Problem problem) {
  const WindowRowsShape& shape = problem.shape;
  CAPTURE(shape.head_dim, shape.gqa_ratio, shape.window);
  value_at(problem, 0, 221)[0] = 0x7F80;
  query_at(problem, 3, 0)[1] = 0x7FC1;
  const std::string host(specializer::host_target_modelling(chip.device->target()));
  const Outputs expected = run(kernel_of(shape, {}, bench_of(host)), problem);
  for (const Switch generic : {Switch::kOff, Switch::kOn}) {
    CHECK(differences(run(kernel_of(shape, {{}, generic}, chip), problem), expected) == 0);
  }
}

}  // namespace broach::test
