// Says where this program would find its compile worker, and what it would not use.
#include <cstdio>

#include "specializer/compile/search.hpp"

int main(int argc, char** argv) {
  broach::specializer::CompilersOptions options;
  if (argc > 1) options.search_path = argv[1];
  const auto found = broach::specializer::find_worker(options);
  for (const auto& file : found.files) std::printf("uses %s\n", file.c_str());
  for (const auto& line : found.refused) std::printf("refuses %s\n", line.c_str());
  return 0;
}
