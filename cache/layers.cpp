#include "cache/layers.hpp"

#include <fmt/core.h>

namespace broach::cache {

LayerStatus DirectoryLayer::status() {
  LayerStatus row;
  row.layer = layer;
  row.usable = true;
  row.why = why;
  row.filesystem = directory->filesystem().name;
  row.journal = "no index: objects are read by name";
  return row;
}

LayerStatus UserLayer::status() {
  LayerStatus row = DirectoryLayer::status();
  row.journal = index.status();
  if (!writable) row.why = "the system forbids writing there";
  return row;
}

LayerStatus BundleLayer::status() {
  const Bundle& bundle = objects.bundle();
  LayerStatus row;
  row.layer = layer;
  row.usable = true;
  row.filesystem = bundle.filesystem().name;
  row.journal = fmt::format("a bundle of {} objects, ", bundle.entries().size());
  if (const auto& signer = bundle.signed_by()) {
    row.journal += fmt::format("signed by {} ({})", signer->name, signer->id().hex());
  } else {
    row.journal += "unsigned";
  }
  return row;
}

}  // namespace broach::cache
