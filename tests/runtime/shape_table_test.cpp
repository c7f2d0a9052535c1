#include "runtime/shape_table.hpp"

#include <atomic>
#include <string>
#include <thread>

#include "specializer/window_rows/shape.hpp"
#include "tests/support/catch.hpp"

namespace broach::runtime {
namespace {

using specializer::hash_of;
using specializer::Shape;
using Table = ShapeTable<Shape, int, specializer::hash_of>;

Shape numbered(std::uint32_t number) {
  WindowRowsShape shape;
  shape.head_dim = 64;
  shape.gqa_ratio = 1 + number % 32;
  shape.window = number / 32;
  return specializer::shape_of(shape);
}

}  // namespace

TEST_CASE("every field of a shape tells it from another", "[runtime][shape_table]") {
  const Shape base = numbered(0);
  std::vector<Shape> changed;
  for (std::size_t field = 0; field < base.values().size(); ++field) {
    Shape other = base;
    other.set(field, base[field] + 1);
    changed.push_back(other);
  }
  Table table;
  table.insert(base, -1);
  for (std::size_t i = 0; i < changed.size(); ++i) {
    CHECK(table.find(changed[i]) == nullptr);
    CHECK(hash_of(changed[i]) != hash_of(base));
    table.insert(changed[i], static_cast<int>(i));
  }
  for (std::size_t i = 0; i < changed.size(); ++i) {
    REQUIRE(table.find(changed[i]) != nullptr);
    CHECK(*table.find(changed[i]) == static_cast<int>(i));
  }
  CHECK(*table.find(base) == -1);
}

TEST_CASE("the first value of a shape stays, at one address, as the table grows",
          "[runtime][shape_table]") {
  Table table;
  const int* const first = &table.insert(numbered(0), 7);
  CHECK(&table.insert(numbered(0), 8) == first);
  for (std::uint32_t i = 1; i < 5000; ++i) table.insert(numbered(i), static_cast<int>(i));
  CHECK(table.find(numbered(0)) == first);
  CHECK(*first == 7);
  int missing = 0;
  for (std::uint32_t i = 1; i < 5000; ++i) {
    const int* found = table.find(numbered(i));
    missing += found == nullptr || *found != static_cast<int>(i);
  }
  CHECK(missing == 0);
}

TEST_CASE("readers see whole entries while others write", "[runtime][shape_table]") {
  constexpr std::uint32_t kShapes = 4000;
  Table table;
  std::atomic<std::uint32_t> written{0};
  std::atomic<int> wrong{0};
  std::vector<std::thread> readers;
  for (int reader = 0; reader < 3; ++reader) {
    readers.emplace_back([&] {
      std::uint32_t at = 0;
      while (at < kShapes) {
        const std::uint32_t ready = written.load(std::memory_order_acquire);
        for (; at < ready; ++at) {
          const int* found = table.find(numbered(at));
          if (found == nullptr || *found != static_cast<int>(at)) ++wrong;
        }
      }
    });
  }
  for (std::uint32_t i = 0; i < kShapes; ++i) {
    table.insert(numbered(i), static_cast<int>(i));
    written.store(i + 1, std::memory_order_release);
  }
  for (std::thread& reader : readers) reader.join();
  CHECK(wrong == 0);
}

}  // namespace broach::runtime
