# Git hash of the sources, taken when CMake configures; a commit makes it configure again.
set(ATS_GIT_HASH unknown)
find_package(Git QUIET)
if(GIT_FOUND AND EXISTS ${PROJECT_SOURCE_DIR}/.git)
  execute_process(COMMAND ${GIT_EXECUTABLE} rev-parse --short=12 HEAD
    WORKING_DIRECTORY ${PROJECT_SOURCE_DIR} OUTPUT_VARIABLE hash
    OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE status ERROR_QUIET)
  if(status EQUAL 0)
    set(ATS_GIT_HASH ${hash})
  endif()
  if(EXISTS ${PROJECT_SOURCE_DIR}/.git/logs/HEAD)
    set_property(DIRECTORY ${PROJECT_SOURCE_DIR} APPEND PROPERTY
      CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/.git/logs/HEAD)
  endif()
endif()
set_source_files_properties(${CMAKE_CURRENT_SOURCE_DIR}/engine/version.c PROPERTIES
  COMPILE_DEFINITIONS "ATS_VERSION=\"${PROJECT_VERSION}\";ATS_GIT_HASH=\"${ATS_GIT_HASH}\";ATS_HDF5_VERSION=\"${HDF5_VERSION}\"")
