#include "tests/tools/made_objects.hpp"

#include <utility>

#include "cache/cache.hpp"

namespace broach::test {

cache::Object made_object(std::string_view name) {
  cache::Object object;
  object.key = cache::KeyBuilder().field("name", name).finish();
  object.description = {"window_rows", "sm_90a",          R"({"head_dim":256})",
                        "0123",        "NVRTC 13.0 test", "cubin"};
  object.provenance.created_unix_ms = 1'700'000'000'000;
  object.provenance.compile_ms = 120;
  LaunchLimits part;
  part.function = "decode_part";
  part.registers = 64;
  part.spill_bytes = 0;
  part.max_threads = 256;
  LaunchLimits merge;  // States neither registers nor spills.
  merge.function = "decode_merge";
  merge.max_threads = 128;
  object.limits = {part, merge};
  object.payload.resize(4096, std::byte{7});
  return object;
}

void publish_in(const std::filesystem::path& directory, cache::Object object) {
  cache::CacheOptions options;
  options.directories = {directory};
  options.notice = [](std::string_view) {};
  cache::Cache::open(std::move(options))->publish(std::move(object));
}

}  // namespace broach::test
