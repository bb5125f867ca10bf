# Debian 12 packages: libhdf5-dev libzstd-dev libyaml-dev libjansson-dev libxxhash-dev
# zlib1g-dev libzip-dev librandom123-dev; libcmocka-dev for the tests. scripts/setup.sh installs them.
find_package(OpenMP REQUIRED COMPONENTS C)
find_package(Threads REQUIRED)
set(HDF5_PREFER_PARALLEL OFF)
find_package(HDF5 REQUIRED COMPONENTS C HL)
find_package(ZLIB REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(ZSTD REQUIRED IMPORTED_TARGET libzstd)
pkg_check_modules(YAML REQUIRED IMPORTED_TARGET yaml-0.1)
pkg_check_modules(JANSSON REQUIRED IMPORTED_TARGET jansson)
pkg_check_modules(LIBZIP REQUIRED IMPORTED_TARGET libzip)
pkg_check_modules(XXHASH REQUIRED IMPORTED_TARGET libxxhash)
find_path(RANDOM123_INCLUDE Random123/philox.h REQUIRED)
