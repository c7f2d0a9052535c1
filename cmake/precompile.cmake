# With BROACH_PRECOMPILE, headers that nearly every unit includes are compiled once a target. It
# makes a first build quicker and is off by default: ccache does not share such builds between
# checkouts.
option(BROACH_PRECOMPILE "Precompile common headers" OFF)

# broach_precompile(<target> [<header>...]): headers beside the common ones, as `<nlohmann/json.hpp>`.
function(broach_precompile target)
  if(BROACH_PRECOMPILE)
    target_precompile_headers(${target} PRIVATE
      <fmt/core.h> <algorithm> <array> <chrono> <condition_variable> <cstdint> <filesystem>
      <functional> <map> <memory> <mutex> <optional> <span> <string> <string_view> <thread>
      <utility> <variant> <vector> ${ARGN})
    # GCC then takes the standard library's inlined code for ours and warns of bounds inside
    # std::string (12: `"a" + text`). A build without precompiled headers has these warnings.
    if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
      target_compile_options(${target} PRIVATE
        -Wno-array-bounds -Wno-restrict -Wno-stringop-overflow -Wno-stringop-overread)
    endif()
  endif()
endfunction()
