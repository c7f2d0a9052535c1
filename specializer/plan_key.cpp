#include "specializer/plan.hpp"

namespace broach::specializer {

// docs/cache_key.md lists the fields in this order. Launch geometry is not among them: it follows
// from the rendered source, whose bytes are.
cache::KeyRecord key_of(const Plan& plan, std::string_view compiler_identity) {
  cache::KeyBuilder key;
  key.field("family", plan.family);
  for (const ShapeParameter& parameter : plan.parameters) {
    key.field("shape." + parameter.name, parameter.value);
  }
  key.field("target", plan.target.name);
  key.field("kind", name_of(plan.kind));
  for (const std::string& option : plan.options) key.field("option", option);
  for (const KernelEntry& entry : plan.entries) {
    key.field("function", entry.function);
    if (!entry.expression.empty()) key.field("function.expression", entry.expression);
  }
  for (const SourceFile& source : plan.sources) {
    key.field("source.name", source.name);
    key.field("source.bytes", source.bytes);
  }
  key.field("compiler", compiler_identity);
  return key.finish();
}

std::string source_hash(const Plan& plan) {
  cache::KeyBuilder digest;
  for (const SourceFile& source : plan.sources) {
    digest.field("source.name", source.name).field("source.bytes", source.bytes);
  }
  return digest.finish().key.hex();
}

}  // namespace broach::specializer
