#include "tools/contract/sage_exact/golden.hpp"

#include <fmt/core.h>
#include <sodium.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <span>

#include "kernel_src/embedded.hpp"

namespace broach {

extern const std::span<const EmbeddedFile> kSageExactGolden;

}  // namespace broach

namespace broach::contract::sage_exact {
namespace {

using Json = nlohmann::json;

unsigned bits(const Json& op, const char* name, const char* fallback) {
  return static_cast<unsigned>(std::stoul(op.value(name, fallback), nullptr, 16));
}

std::size_t count(const Json& op, const char* name, std::size_t fallback) {
  return op.value(name, fallback);
}

InputChange::Range range(const Json& op, const char* name, std::size_t whole) {
  InputChange::Range out{0, whole, 1};
  const auto found = op.find(name);
  if (found == op.end()) return out;
  out.begin = found->at(0);
  out.end = found->at(1);
  if (found->size() > 2) out.step = found->at(2);
  return out;
}

InputChange change_of(const Json& op, const InputRule& rule) {
  constexpr std::pair<std::string_view, InputChange::Kind> kKinds[] = {
      {"bits", InputChange::Kind::kBits},    {"list", InputChange::Kind::kList},
      {"pick", InputChange::Kind::kPick},    {"ramp", InputChange::Kind::kRamp},
      {"exp", InputChange::Kind::kExponent}, {"exprand", InputChange::Kind::kRandomExponent},
      {"from", InputChange::Kind::kFrom}};
  InputChange change;
  const auto name = op.at("op").get<std::string>();
  const auto* const kind = std::find_if(std::begin(kKinds), std::end(kKinds),
                                        [&](const auto& each) { return each.first == name; });
  if (kind == std::end(kKinds)) throw std::invalid_argument("unknown op " + name);
  change.kind = kind->second;
  change.part = std::string_view("QKV").find(op.at("part").get<std::string>());
  if (change.part > 2) throw std::invalid_argument("unknown part");
  change.heads = range(op, "h", rule.heads);
  change.tokens = range(op, "n", rule.tokens);
  change.dims = range(op, "d", kHeadDim);
  change.kept = bits(op, "and", "ffff");
  change.set = bits(op, "or", "0");
  if (op.contains("list")) {
    for (const Json& value : op.at("list")) {
      change.values.push_back(
          static_cast<std::uint16_t>(std::stoul(value.get<std::string>(), nullptr, 16)));
    }
  }
  change.token_factor = count(op, "pn", 0);
  change.dim_factor = count(op, "pd", 0);
  change.start = bits(op, "v", "0");
  change.modulus = count(op, "mod", 65536);
  change.k = op.value("k", 0);
  change.kd = op.value("kd", 0);
  change.kn = op.value("kn", 0);
  change.md = count(op, "md", 1);
  change.mn = count(op, "mn", 1);
  change.base = op.value("base", 0U);
  change.mask = op.value("mask", 0U);
  change.from = op.value("a", std::int64_t{0});
  change.factor = op.value("g", std::int64_t{0});
  change.sign_of_odd_tokens = op.value("sgn", 0) == 1;
  change.toggled = bits(op, "xor", "0");
  return change;
}

GoldenCase case_of(const std::string& name, const Json& entry) {
  GoldenCase golden;
  golden.name = name;
  golden.rule.tokens = entry.at("N");
  golden.rule.heads = entry.at("H");
  golden.rule.seed = entry.at("seed");
  golden.rule.q_multiplier = entry.at("qmul");
  if (entry.contains("ops")) {
    for (const Json& op : entry.at("ops")) golden.changes.push_back(change_of(op, golden.rule));
  }
  for (const auto& [tensor, digest] : entry.at("sha256").items()) {
    golden.digests.emplace_back(tensor, digest.get<std::string>());
  }
  return golden;
}

}  // namespace

std::string_view GoldenCase::digest(std::string_view tensor) const noexcept {
  for (const auto& [of, hex] : digests) {
    if (of == tensor) return hex;
  }
  return {};
}

std::vector<std::uint16_t> make_input(const GoldenCase& golden) {
  std::vector<std::uint16_t> input = make_input(golden.rule);
  for (const InputChange& change : golden.changes) apply(change, golden.rule, input);
  return input;
}

std::string sha256_of(const void* bytes, std::size_t count) {
  unsigned char digest[crypto_hash_sha256_BYTES];
  crypto_hash_sha256(digest, static_cast<const unsigned char*>(bytes), count);
  char hex[2 * sizeof digest + 1];
  return sodium_bin2hex(hex, sizeof hex, digest, sizeof digest);
}

Result<std::vector<GoldenCase>> golden_cases() {
  std::vector<GoldenCase> cases;
  for (const EmbeddedFile& file : kSageExactGolden) {
    try {
      const Json whole = Json::parse(file.bytes);
      std::vector<GoldenCase> of_file;
      for (const auto& [name, entry] : whole.at("cases").items()) {
        of_file.push_back(case_of(name, entry));
      }
      std::stable_sort(of_file.begin(), of_file.end(), [](const auto& a, const auto& b) {
        return a.rule.tokens * a.rule.heads < b.rule.tokens * b.rule.heads;
      });
      cases.insert(cases.end(), of_file.begin(), of_file.end());
    } catch (const std::exception& error) {
      return Error{ErrorCode::kInternal,
                   fmt::format("the golden file {} cannot be read: {}", file.name, error.what()),
                   {}};
    }
  }
  return cases;
}

}  // namespace broach::contract::sage_exact
