# One interface target carries every flag; each library of src/ links it.
set(CMAKE_C_STANDARD 17)
set(CMAKE_C_EXTENSIONS ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)

option(ATS_WERROR "Warnings are errors" OFF)
option(ATS_SANITIZE "AddressSanitizer and UndefinedBehaviorSanitizer" OFF)
option(ATS_COVERAGE "Line coverage" OFF)
option(ATS_FUZZ "libFuzzer targets in tests/fuzz (clang)" OFF)

add_library(ats_flags INTERFACE)
target_include_directories(ats_flags INTERFACE ${PROJECT_SOURCE_DIR}/src)
target_compile_definitions(ats_flags INTERFACE _GNU_SOURCE)
target_compile_options(ats_flags INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wstrict-prototypes -Wmissing-prototypes
  -Wcast-qual -Wvla -Wswitch-enum -Wdouble-promotion
  -Wno-maybe-uninitialized # out-parameters are written only on success: gcc cannot follow that
  -Wno-format-truncation   # a cut text is meant wherever snprintf's result is not read
  -ffp-contract=off
  -fno-strict-aliasing # tables of typed pointers are filled through void **
  $<$<BOOL:${ATS_WERROR}>:-Werror>)
if(ATS_SANITIZE)
  target_compile_options(ats_flags INTERFACE -fsanitize=address,undefined -fno-omit-frame-pointer
    -fno-sanitize-recover=all)
  target_link_options(ats_flags INTERFACE -fsanitize=address,undefined)
endif()
if(ATS_FUZZ)
  target_compile_options(ats_flags INTERFACE -fsanitize=fuzzer-no-link -Wno-unknown-warning-option)
endif()
if(ATS_COVERAGE)
  target_compile_options(ats_flags INTERFACE --coverage)
  target_link_options(ats_flags INTERFACE --coverage)
endif()
