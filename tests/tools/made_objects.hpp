#pragma once

#include <filesystem>
#include <string_view>

#include "cache/object.hpp"

namespace broach::test {

/// A cache object of a made-up binary with two functions; objects of different names differ in
/// their key alone.
cache::Object made_object(std::string_view name);

/// Publishes the object in a cache directory and closes it again.
void publish_in(const std::filesystem::path& directory, cache::Object object);

}  // namespace broach::test
