# Every library the project stands on, found once. System packages only.
find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)
find_package(SQLiteCpp REQUIRED)
find_package(CLI11 REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(fmt REQUIRED)
# Compiled into the library: it then starts where fmt is not installed.
add_library(broach_fmt STATIC ${CMAKE_CURRENT_LIST_DIR}/fmt.cpp)
target_include_directories(
  broach_fmt SYSTEM PUBLIC $<TARGET_PROPERTY:fmt::fmt,INTERFACE_INCLUDE_DIRECTORIES>)
# The static archive: the library and the command then start where Boost is not installed.
set(Boost_USE_STATIC_LIBS ON)
find_package(Boost REQUIRED COMPONENTS context)
pkg_check_modules(xxhash REQUIRED IMPORTED_TARGET libxxhash)
pkg_check_modules(sodium REQUIRED IMPORTED_TARGET libsodium)
pkg_check_modules(zstd REQUIRED IMPORTED_TARGET libzstd)

# The static archive where there is one: the command then runs on machines without the library. Its
# code is not position independent everywhere, so a shared library takes the shared one.
find_library(BROACH_LIBELF NAMES libelf.a elf REQUIRED)
find_library(BROACH_LIBELF_SHARED NAMES elf REQUIRED)
set(broach_is_shared $<STREQUAL:$<TARGET_PROPERTY:TYPE>,SHARED_LIBRARY>)
find_path(BROACH_LIBELF_INCLUDE NAMES libelf.h REQUIRED)
add_library(broach_libelf INTERFACE)
target_link_libraries(
  broach_libelf INTERFACE $<IF:${broach_is_shared},${BROACH_LIBELF_SHARED},${BROACH_LIBELF}>
                          ZLIB::ZLIB)
target_include_directories(broach_libelf SYSTEM INTERFACE ${BROACH_LIBELF_INCLUDE})
find_package(ZLIB REQUIRED)

# Redis's protocol, without its connections: the static archive likewise, also because the layout of
# its replies differs between versions.
find_library(BROACH_HIREDIS NAMES libhiredis.a hiredis REQUIRED)
find_path(BROACH_HIREDIS_INCLUDE NAMES hiredis/hiredis.h REQUIRED)
add_library(broach_hiredis INTERFACE)
target_link_libraries(broach_hiredis INTERFACE ${BROACH_HIREDIS})
target_include_directories(broach_hiredis SYSTEM INTERFACE ${BROACH_HIREDIS_INCLUDE})

# Headers alone: the library is opened at run time, by whoever has a remote tier.
find_path(BROACH_CURL_INCLUDE NAMES curl/curl.h REQUIRED)
add_library(broach_curl_headers INTERFACE)
target_include_directories(broach_curl_headers SYSTEM INTERFACE ${BROACH_CURL_INCLUDE})

if(BROACH_BUILD_TESTS)
  find_path(BROACH_CATCH2_INCLUDE NAMES catch2/catch.hpp catch2/catch_all.hpp REQUIRED)
endif()
