# Installs into the build folder and builds tests/package against the result.

# A program that is not instrumented cannot load an instrumented library.
if(SPARSESEL_SANITIZE)
  return()
endif()

set(stage "${PROJECT_BINARY_DIR}/stage")
add_test(NAME package_install
  COMMAND "${CMAKE_COMMAND}" --install "${PROJECT_BINARY_DIR}" --prefix "${stage}")
set_tests_properties(package_install PROPERTIES FIXTURES_SETUP installed_package)

add_test(NAME package_use
  COMMAND "${CMAKE_CTEST_COMMAND}"
    --build-and-test "${CMAKE_CURRENT_SOURCE_DIR}/package" "${PROJECT_BINARY_DIR}/package"
    --build-generator "${CMAKE_GENERATOR}"
    --build-options "-DCMAKE_PREFIX_PATH=${stage}" "-DCMAKE_C_COMPILER=${CMAKE_C_COMPILER}"
    --test-command "${CMAKE_CTEST_COMMAND}" --output-on-failure)
set_tests_properties(package_use PROPERTIES FIXTURES_REQUIRED installed_package)
