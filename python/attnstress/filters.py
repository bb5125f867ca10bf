"""The zstd filter (HDF5 filter 32015): hdf5plugin's, or the one on HDF5_PLUGIN_PATH."""

from __future__ import annotations

from typing import Any

import h5py

from .errors import EnvironmentFault

ZSTD = 32015


def zstd(level: int = 3) -> dict[str, Any]:
    """Keywords of h5py's create_dataset; also what readers call so that the filter is there."""
    try:
        import hdf5plugin
    except ImportError:
        if not h5py.h5z.filter_avail(ZSTD):
            raise EnvironmentFault("HDF5's zstd filter is missing: pip install hdf5plugin, or set "
                                   "HDF5_PLUGIN_PATH to the folder that `attnstress doctor` prints") from None
        return {"compression": ZSTD, "compression_opts": (level,)}
    return dict(hdf5plugin.Zstd(clevel=level))
