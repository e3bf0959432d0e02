# What is installed: the header, the library, the tool, and the files by which CMake and pkg-config
# find them. Every dependency is inside the library, so the package names none.

if(NOT TARGET sparsesel)
  return()
endif()
include(CMakePackageConfigHelpers)

set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/sparsesel")
install(TARGETS sparsesel EXPORT sparsesel
  LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}")
install(FILES "${PROJECT_SOURCE_DIR}/include/sparsesel.h"
  DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" DESTINATION "${CMAKE_INSTALL_DOCDIR}")
if(TARGET sparsesel_cli)
  install(TARGETS sparsesel_cli RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
endif()

# The exported targets are the whole configuration: there is nothing to look for.
install(EXPORT sparsesel NAMESPACE sparsesel:: DESTINATION "${package_dir}"
  FILE sparsesel-config.cmake)
# Before 1.0 a minor version may change the ABI.
write_basic_package_version_file("${PROJECT_BINARY_DIR}/sparsesel-config-version.cmake"
  COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/sparsesel-config-version.cmake" DESTINATION "${package_dir}")

# Relative to the .pc file, so that an installation can be moved.
file(RELATIVE_PATH pc_to_prefix "/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/")
configure_file("${PROJECT_SOURCE_DIR}/cmake/sparsesel.pc.in" "${PROJECT_BINARY_DIR}/sparsesel.pc"
  @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/sparsesel.pc"
  DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
