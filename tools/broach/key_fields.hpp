#pragma once

#include <string>
#include <vector>

#include "cache/key.hpp"

namespace broach::tool {

/// The fields with each pair `source.name`, `source.bytes` as one field "source NAME".
std::vector<cache::KeyField> with_named_sources(const std::vector<cache::KeyField>& fields);

/// Whether the field, of `with_named_sources`, holds a source file's text.
bool is_source(const cache::KeyField& field);

/// The field's value on one line; long texts as their size and a digest that tells them apart.
std::string field_summary(const cache::KeyField& field);

/// One field in which two keys differ; a side that lacks the field is empty.
struct KeyDifference {
  std::string label;
  std::string wanted;
  std::string found;
};

/// Where two keys' fields, of `with_named_sources`, differ, in the order of the wanted key. Fields
/// are matched by label, and repeated labels in order.
std::vector<KeyDifference> differences(const std::vector<cache::KeyField>& wanted,
                                       const std::vector<cache::KeyField>& found);

}  // namespace broach::tool
