#!/usr/bin/env bash
# Installs the Debian packages the project needs.
#   scripts/setup.sh          to build and run the program
#   scripts/setup.sh --tests  also what the tests need
# Runs as root or through sudo; does nothing when all packages are there.
set -euo pipefail

build=(build-essential cmake ninja-build pkg-config git ca-certificates
       libhdf5-dev zlib1g-dev libzstd-dev libyaml-dev libjansson-dev libzip-dev libxxhash-dev
       librandom123-dev)
tests=(libcmocka-dev python3 python3-pytest python3-numpy python3-h5py python3-xarray python3-h5netcdf
       python3-netcdf4 python3-jsonschema python3-yaml python3-prometheus-client
       netcdf-bin hdf5-tools libxml2-utils
       clang-format-14 chromium fonts-dejavu-core groff-base)

packages=("${build[@]}")
if [[ "${1:-}" == --tests ]]; then packages+=("${tests[@]}"); fi

# nvcc without its disassembler: the tests of the compiled GPU module need cuobjdump and nvdisasm.
tools=$(cd "$(dirname "$0")/.." && pwd)/build/cuda-tools
nvcc=$(command -v nvcc || ls /usr/local/cuda/bin/nvcc 2>/dev/null || true)
if [[ "${1:-}" == --tests && -n $nvcc && ! -x $(dirname "$nvcc")/cuobjdump && ! -d $tools/nvidia ]] &&
    ! command -v cuobjdump >/dev/null; then
    echo "setup: installing cuobjdump and nvdisasm from PyPI into $tools"
    /usr/bin/python3 -m pip install -q --no-deps --target "$tools" nvidia-cuda-cuobjdump nvidia-cuda-nvdisasm &&
        chmod +x "$tools"/nvidia/cu*/bin/* ||
        echo "setup: that failed; the compiled GPU module is not looked into" >&2
fi

missing=()
for package in "${packages[@]}"; do
    [[ "$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null || true)" == installed ]] ||
        missing+=("$package")
done
if [[ ${#missing[@]} -eq 0 ]]; then
    echo "setup: all ${#packages[@]} Debian packages are installed"
    exit 0
fi

as_root=()
if [[ $(id -u) -ne 0 ]]; then
    if ! command -v sudo >/dev/null; then
        echo "setup: run this as root or install sudo; missing packages: ${missing[*]}" >&2
        exit 4
    fi
    as_root=(sudo)
fi
echo "setup: installing ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
"${as_root[@]}" apt-get update -qq
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
    "${missing[@]}" >/dev/null
echo "setup: done"
