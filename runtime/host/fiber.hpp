#pragma once

#include <cstddef>
#include <span>

#include "broach/result.hpp"

namespace broach::runtime::host {

/// Equal stacks in one mapping, each above a guard page.
///
/// Units:   bytes; pages are touched only as far down as a fiber uses them.
/// Owns:    the mapping.
class StackSet {
 public:
  /// Errors:  kOutOfMemory naming the size.
  static Result<StackSet> create(std::size_t count, std::size_t stack_bytes);
  ~StackSet();
  StackSet(StackSet&& other) noexcept;
  StackSet& operator=(StackSet&&) = delete;

  std::span<std::byte> stack(std::size_t index) const noexcept;

 private:
  StackSet(std::byte* base, std::size_t count, std::size_t stack_bytes, std::size_t guard_bytes);

  std::byte* base_ = nullptr;
  std::size_t count_ = 0;
  std::size_t stack_bytes_ = 0;
  std::size_t guard_bytes_ = 0;
};

/// A flow of control that can be left and come back to: a thread's own stack, or a fiber.
///
/// AddressSanitizer and ThreadSanitizer are told of every switch.
///
/// Threads: one OS thread for its whole life.
class Fiber {
 public:
  /// What a fiber runs; it may never return.
  using Body = void (*)(void* argument);

  /// The flow of control that is running now.
  Fiber();
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  /// Makes the next switch to this fiber start `body` on `stack`. What the fiber ran before is
  /// dropped where it stood, without unwinding: it must own nothing.
  void start(std::span<std::byte> stack, Body body, void* argument) noexcept;

  /// Leaves `from`, which must be running, for `to`; returns when someone switches back.
  static void switch_to(Fiber& from, Fiber& to) noexcept;

 private:
  struct Entry;

  void* context_ = nullptr;
  std::span<const std::byte> stack_;  ///< Learnt at the first switch for a thread's own stack.
  Body body_ = nullptr;
  void* argument_ = nullptr;
  void* fake_stack_ = nullptr;  ///< AddressSanitizer's.
  void* tsan_fiber_ = nullptr;
  bool owns_tsan_fiber_ = false;
};

}  // namespace broach::runtime::host
