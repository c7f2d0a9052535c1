# The install tree: libbroach with its headers, the command, the compile worker, and what CMake's
# find_package and pkg-config read. Included last, when every target exists.
include(CMakePackageConfigHelpers)

install(
  TARGETS broach_library
  EXPORT broachTargets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
  FILE_SET HEADERS DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
  # CMake before 3.23 does not read header sets.
  INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(TARGETS broach_command RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(TARGETS broach-rtc RUNTIME DESTINATION ${CMAKE_INSTALL_LIBEXECDIR}/broach)

# What people's own kernels include, for editors and for nvcc; the library has them embedded. Their
# include path is <prefix>/include and <prefix>/include/broach.
install(FILES ${PROJECT_SOURCE_DIR}/kernel_src/broach/kernel.cuh
              ${PROJECT_SOURCE_DIR}/kernel_src/broach/launch_geometry.h
        DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/broach)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/kernel_src/common
        DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/broach FILES_MATCHING PATTERN "*.cuh")
install(FILES ${PROJECT_SOURCE_DIR}/kernel_src/host/abi.h
        DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/broach/host)

set(broach_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/broach)
install(EXPORT broachTargets NAMESPACE broach:: DESTINATION ${broach_package_dir})
file(WRITE ${PROJECT_BINARY_DIR}/broachConfig.cmake
     "include(\${CMAKE_CURRENT_LIST_DIR}/broachTargets.cmake)\n")
# Before 1.0 a minor version may change the interface.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/broachConfigVersion.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/broachConfig.cmake
              ${PROJECT_BINARY_DIR}/broachConfigVersion.cmake
        DESTINATION ${broach_package_dir})

# Relative to the .pc file, so that the tree can be moved.
set(broach_pc_dir ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
file(RELATIVE_PATH broach_pc_prefix /prefix/${broach_pc_dir} /prefix)
configure_file(${CMAKE_CURRENT_LIST_DIR}/broach.pc.in ${PROJECT_BINARY_DIR}/broach.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/broach.pc DESTINATION ${broach_pc_dir})
