#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "tools/contract/harness/contract.hpp"

namespace broach::contract {

/// One line a kernel, a control, a compiler, a target, a function that differs between toolchains;
/// more of them where something failed.
std::string line_of(const KernelReport& report);
std::string line_of(const ControlReport& report);
std::string line_of(const CompilerReport& compiler);
std::string line_of(const LimitReport& limit);
std::string line_of(const LimitDifference& difference);

/// What gate 5 covered, in one line.
std::string words_of(const LimitRun& run);

/// "SUMMARY <target> <n> kernels: <n> pass gates 1-4, <n> fail, …"
std::string summary_of(const ContractReport& report);

/// The lines of what failed, was missed or does not fit, one after the other; empty when all holds.
std::string failures_of(const ContractReport& report);

/// Every figure as one JSON object.
nlohmann::ordered_json to_json(const ContractReport& report);
nlohmann::ordered_json to_json(const LimitRun& run);

/// What a receipt keeps of a binary: whether it passed, and the gates of every case that tried it.
std::string receipt_json(const std::vector<const KernelReport*>& cases);

/// A receipt's JSON in words: "passed, 4 cases, 12345 comparisons", or what it holds otherwise.
std::string receipt_words(std::string_view json);

/// Kernels, controls and bounds in words, and why each bound is what it is; as JSON or text.
std::string list_text(const ContractRequest& request);
nlohmann::ordered_json list_json(const ContractRequest& request);

}  // namespace broach::contract
