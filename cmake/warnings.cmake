# Warnings and sanitizers, linked privately by every target of the project. Only the compile
# worker, which limits its own address space, takes the warnings without the sanitizers.
add_library(broach_plain_warnings INTERFACE)
target_compile_options(
  broach_plain_warnings
  INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Wconversion -Wsign-conversion
            $<$<BOOL:${BROACH_WERROR}>:-Werror>)
add_library(broach_warnings INTERFACE)
target_link_libraries(broach_warnings INTERFACE broach_plain_warnings)
if(BROACH_SANITIZE)
  list(JOIN BROACH_SANITIZE "," broach_sanitizers)
  target_compile_options(broach_warnings INTERFACE -fsanitize=${broach_sanitizers}
                                                   -fno-omit-frame-pointer)
  target_link_options(broach_warnings INTERFACE -fsanitize=${broach_sanitizers})
endif()
