# `cmake --install` and the Debian package (`cpack -G DEB`). The zstd filter goes where Debian's HDF5
# looks for filters, so that h5py and h5dump read results without further ado (netCDF's programs want
# HDF5_PLUGIN_PATH all the same).
include(GNUInstallDirs)

set(ATS_FILTER_DIR lib/${CMAKE_LIBRARY_ARCHITECTURE}/hdf5/serial/plugins CACHE STRING
  "Folder of the HDF5 filter, relative to the prefix")

install(TARGETS attnstress RUNTIME COMPONENT program)
install(TARGETS h5zstd LIBRARY DESTINATION ${ATS_FILTER_DIR} COMPONENT program)
install(DIRECTORY suites schema examples DESTINATION ${CMAKE_INSTALL_DATADIR}/attnstress
  COMPONENT program)
install(FILES README.md CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT program)
install(DIRECTORY docs DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT program)

# `pip install .`: the program inside the Python package.
if(SKBUILD)
  install(TARGETS attnstress RUNTIME DESTINATION attnstress/bin COMPONENT python)
endif()

set(man ${CMAKE_BINARY_DIR}/attnstress.1)
set(completion ${CMAKE_BINARY_DIR}/attnstress.bash)
add_custom_command(OUTPUT ${man} ${completion}
  COMMAND attnstress help --man > ${man}
  COMMAND attnstress help --completion > ${completion}
  DEPENDS attnstress VERBATIM)
add_custom_target(manual ALL DEPENDS ${man} ${completion})
install(FILES ${man} DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT program)
install(FILES ${completion} DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions
  RENAME attnstress COMPONENT program)

set(CPACK_PACKAGE_NAME attnstress)
set(CPACK_PACKAGE_CONTACT "the attnstress authors <attnstress@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "stress-test the routes of attention heads at long context")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_GENERATOR DEB)
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_ALL program)
set(CPACK_DEB_COMPONENT_INSTALL OFF)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
include(CPack)
