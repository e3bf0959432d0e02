# The language, the warnings and the sanitizers of everything that is compiled here.

set(CMAKE_C_STANDARD 99)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

# Nothing leaves the library by accident: the header marks what does, the export map lists it.
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_CUDA_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)

if(SPARSESEL_SANITIZE)
  add_compile_options(
    "$<$<COMPILE_LANGUAGE:C,CXX>:-fsanitize=${SPARSESEL_SANITIZE};-fno-omit-frame-pointer>")
  add_link_options("-fsanitize=${SPARSESEL_SANITIZE}")
  if(SPARSESEL_DEPS_FLAVOR STREQUAL "asan")
    # A report of undefined behavior must fail its test.
    add_compile_options("$<$<COMPILE_LANGUAGE:C,CXX>:-fno-sanitize-recover=all>")
  endif()
endif()

set(sparsesel_warnings -Wall -Wextra -Wpedantic -Wshadow -Wundef -Wvla -Wcast-align
  -Wdouble-promotion -Wformat=2 -Wimplicit-fallthrough -Wmissing-declarations)
# -Wconversion finds the 64-bit offset cut to 32 bits. Its sign half (-Wsign-conversion) is not
# asked for: indices and counts here are signed and unsigned by turns, and it finds nothing else.
set(sparsesel_cxx_warnings -Wconversion -Wno-sign-conversion -Wnon-virtual-dtor
  -Woverloaded-virtual -Wextra-semi
  -Wno-missing-field-initializers) # designated initializers leave the rest zero on purpose
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # GCC 12 finds overruns inside std::string's own operator+ (its bugs 105329 and 105651).
  list(APPEND sparsesel_cxx_warnings -Wno-array-bounds -Wno-stringop-overflow -Wno-restrict)
endif()

add_library(sparsesel_warnings INTERFACE)
target_compile_options(sparsesel_warnings INTERFACE
  "$<$<COMPILE_LANGUAGE:C,CXX>:${sparsesel_warnings}>"
  "$<$<COMPILE_LANGUAGE:CXX>:${sparsesel_cxx_warnings}>"
  "$<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wall,-Wextra>"
  # A kernel that spills registers is an error.
  "$<$<AND:$<COMPILE_LANGUAGE:CUDA>,$<NOT:$<CONFIG:Debug>>>:-Xptxas=--warn-on-spills,--warning-as-error>")
