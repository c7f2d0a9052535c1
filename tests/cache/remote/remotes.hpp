#pragma once

#include <chrono>
#include <string>
#include <utility>

#include "cache/remote/remote.hpp"
#include "tests/support/catch.hpp"

namespace broach::cache::remote::test {

/// Long enough for a machine that is busy with other tests.
inline constexpr Patience kPatient{std::chrono::seconds(30), std::chrono::seconds(60)};
inline constexpr Patience kImpatient{std::chrono::milliseconds(50), std::chrono::milliseconds(200)};

inline std::unique_ptr<Remote> remote_at(const std::string& url, std::string secret = "",
                                         std::string certificates = "") {
  auto address = parse_address(url);
  REQUIRE(address);
  auto opened = open_remote({std::move(*address), std::move(secret), std::move(certificates)});
  REQUIRE(opened);
  return std::move(*opened);
}

inline Result<std::optional<std::string>> get(Remote& remote, const KeyRecord& key,
                                              const Patience& patience = kPatient) {
  Deadline deadline(patience);
  return remote.get(key, deadline);
}

inline Result<void> put(Remote& remote, const KeyRecord& key, std::string_view value,
                        const Patience& patience = kPatient) {
  Deadline deadline(patience);
  return remote.put(key, value, deadline);
}

inline Result<bool> has(Remote& remote, const KeyRecord& key, const Patience& patience = kPatient) {
  Deadline deadline(patience);
  return remote.has(key, deadline);
}

/// Stores, finds, replaces and misses, with every byte and with more than one socket buffer.
inline void check_keeps_values(Remote& remote) {
  const KeyRecord key = KeyBuilder().field("name", "kept").finish();
  const KeyRecord other = KeyBuilder().field("name", "other").finish();
  auto absent = get(remote, key);
  REQUIRE(absent);
  CHECK_FALSE(absent->has_value());
  CHECK(has(remote, key).value() == false);

  std::string value(3 << 20, '\0');
  for (std::size_t i = 0; i < value.size(); ++i) value[i] = static_cast<char>(i * 131 >> 3);
  REQUIRE(put(remote, key, value));
  const auto found = get(remote, key);
  REQUIRE(found);
  CHECK(**found == value);
  CHECK(has(remote, key).value() == true);
  CHECK_FALSE(get(remote, other).value().has_value());

  REQUIRE(put(remote, key, "short"));
  CHECK(get(remote, key).value() == "short");
  REQUIRE(put(remote, key, ""));
  CHECK(get(remote, key).value() == "");
}

}  // namespace broach::cache::remote::test
