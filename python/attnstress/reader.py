"""`attnstress.open`: a result as an xarray Dataset."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .errors import BadInput, Unsupported
from .filters import zstd

if TYPE_CHECKING:
    import xarray


FORMAT_VERSION = 1  # every minor of it: what is new there is ignored or passed on


def open_result(path: str | os.PathLike[str], chunks: Any = None, **keywords: Any) -> xarray.Dataset:
    """Opens a result file; values are read when they are used.

    chunks: None for plain lazy arrays; {} or "auto" for dask arrays along the file's own chunks
    (needs dask). `case`, `sample`, `head`, ... are dimensions; the columns that describe a case
    (perturbation, dose, arm, ...) are coordinates along `case`, so that
    `ds.where(ds.arm == "treatment", drop=True)` and `ds.sel(layer=5)` work.
    """
    import xarray

    zstd()
    name = Path(path)
    if not name.is_file():
        raise BadInput(f"{name} does not exist or is no file")
    import h5py

    try:
        with h5py.File(name) as f:
            kind = f.attrs.get("format", "")
            complete = int(f.attrs.get("complete", 0))
            version = int(f.attrs.get("format_version", FORMAT_VERSION))
    except OSError as fault:
        raise BadInput(f"{name} is no HDF5 file: {fault}") from fault
    kind = kind.decode() if isinstance(kind, bytes) else str(kind)
    if kind == "attnstress-capture":
        raise BadInput(f"{name} is a capture, the input of a run; attnstress.run(suite, out, "
                       f"capture=[...]) makes a result of it, `attnstress inspect {name}` prints it")
    if kind != "attnstress-result":
        raise BadInput(f"{name} is no attnstress result (its format attribute is {kind!r})")
    if version != FORMAT_VERSION:
        raise Unsupported(f"{name} has format_version {version}; this package reads {FORMAT_VERSION}: "
                          "install a newer attnstress")
    if not complete:
        raise BadInput(f"{name} is not complete; run the suite again, it goes on where it stopped")
    ds = xarray.open_dataset(name, engine="h5netcdf", chunks=chunks, **keywords)
    per_case = [v for v in ds.variables if ds[v].dims == ("case",) and v != "case"]
    return ds.set_coords([*per_case, *_indices(ds)])


def _indices(ds: xarray.Dataset) -> list[Any]:
    """One-dimensional describing columns of the other axes."""
    return [v for v in ds.data_vars if len(ds[v].dims) == 1 and ds[v].dims[0] in ("sample", "layer", "head")
            and not str(v).startswith("base_")]
