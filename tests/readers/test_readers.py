"""Other people's readers on a fresh result: h5py, xarray with both engines, ncdump, h5dump.

They must list the same variables and give the same numbers (RC-18a).
Usage: test_readers.py WRITE_RESULT PLUGIN_FOLDER
"""
import filecmp
import os
import re
import subprocess
import sys
import tempfile
import unittest

WRITE, PLUGIN = sys.argv[1:3]
os.environ["HDF5_PLUGIN_PATH"] = PLUGIN  # read when the library first meets a filter

import h5py  # noqa: E402
import numpy as np  # noqa: E402
import xarray as xr  # noqa: E402

ENGINES = ("h5netcdf", "netcdf4")
REQUIRED = ("units", "long_name", "definition")
WITHOUT_PLUGIN = dict(os.environ, HDF5_PLUGIN_PATH="/nonexistent")


def written(folder, compression, detail="probe", name=None):
    path = os.path.join(folder, name or f"{compression}-{detail}.h5")
    environment = dict(os.environ, OMP_WAIT_POLICY="passive")
    subprocess.run([WRITE, path, compression, detail], check=True, env=environment)
    return path


def same(a, b):
    a, b = np.asarray(a), np.asarray(b)
    if a.dtype.kind in "OSU":
        return a.shape == b.shape and all(str(x) == str(y) for x, y in zip(a.flat, b.flat))
    return np.array_equal(a.astype("f8"), b.astype("f8"), equal_nan=True)


class Readers(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="readers-")
        cls.paths = {
            (compression, detail): written(cls.folder.name, compression, detail)
            for compression, detail in (("zstd", "probe"), ("zstd", "head"), ("deflate", "probe"))
        }

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_every_axis_has_exactly_one_scale(self):
        for path in self.paths.values():
            with h5py.File(path, "r") as f:
                self.assertEqual(f.attrs["Conventions"], "CF-1.10")
                self.assertEqual(f.attrs["complete"], 1)
                for name, data in f.items():
                    self.assertIsInstance(data, h5py.Dataset, name)
                    if h5py.h5ds.is_scale(data.id):
                        self.assertEqual(data.ndim, 1, name)
                        continue
                    for axis in range(data.ndim):
                        scales = data.dims[axis].values()
                        self.assertEqual(len(scales), 1, f"{name}, axis {axis}")
                        self.assertEqual(scales[0].shape[0], data.shape[axis], name)

    def test_every_scale_lists_its_users(self):
        for path in self.paths.values():
            with h5py.File(path, "r") as f:
                listed, used = {}, {}
                for name, data in f.items():
                    if h5py.h5ds.is_scale(data.id):
                        for user, axis in data.attrs.get("REFERENCE_LIST", []):
                            listed.setdefault(name, []).append((f[user].name[1:], int(axis)))
                        continue
                    for axis in range(data.ndim):
                        scale = data.dims[axis][0]
                        self.assertTrue(h5py.h5ds.is_attached(data.id, scale.id, axis), name)
                        used.setdefault(scale.name[1:], []).append((name, axis))
                self.assertEqual({k: sorted(v) for k, v in listed.items()},
                                 {k: sorted(v) for k, v in used.items()})

    def test_axes_of_equal_length_keep_their_names(self):
        with h5py.File(self.paths["zstd", "probe"], "r") as f:
            names = [list(d.keys())[0] for d in f["topk_weight"].dims]
            self.assertEqual(names, ["case", "layer", "head", "probe", "k"])
            self.assertEqual(f["topk_weight"].shape[2], f["topk_weight"].shape[4])

    def test_every_variable_is_described(self):
        for path in self.paths.values():
            with h5py.File(path, "r") as f:
                for name, data in f.items():
                    for attribute in REQUIRED:
                        self.assertTrue(data.attrs.get(attribute), f"{name}: {attribute}")
                    if data.dtype == np.float32:
                        self.assertTrue(np.isnan(data.fillvalue), name)
                        self.assertTrue(np.isnan(data.attrs["_FillValue"][0]), name)
                    self.assertTrue(
                        data.dtype.kind in "if" or h5py.check_string_dtype(data.dtype), name)
                    text = h5py.check_string_dtype(data.dtype)
                    if text:
                        self.assertIsNone(text.length, f"{name} is of fixed length")
                        self.assertEqual(text.encoding, "utf-8", name)

    def test_creation_order_is_tracked(self):
        with h5py.File(self.paths["zstd", "probe"], "r") as f:
            order = h5py.h5g.open(f.id, b"/").get_create_plist().get_link_creation_order()
            self.assertTrue(order & h5py.h5p.CRT_ORDER_TRACKED)
            for data in f.values():
                self.assertTrue(data.id.get_create_plist().get_attr_creation_order()
                                & h5py.h5p.CRT_ORDER_TRACKED, data.name)

    def test_readers_list_the_same_variables(self):
        for path in self.paths.values():
            with h5py.File(path, "r") as f:
                wanted = set(f)
            for engine in ENGINES:
                with xr.open_dataset(path, engine=engine) as ds:
                    self.assertEqual(set(ds.variables), wanted, engine)
                    self.assertFalse([d for d in ds.dims if d.startswith("phony")], engine)
            header = subprocess.run(["ncdump", "-h", path], check=True, capture_output=True,
                                    text=True).stdout
            listed = set(re.findall(r"^\t\w+ (\w+)(?:\(.*\))? ;$", header, re.M))
            self.assertEqual(listed, wanted)
            contents = subprocess.run(["h5dump", "-n", path], check=True, capture_output=True,
                                      text=True).stdout
            self.assertEqual(set(re.findall(r"dataset\s+/(\w+)", contents)), wanted)

    def test_readers_give_the_same_numbers(self):
        for path in self.paths.values():
            with h5py.File(path, "r") as f, \
                    xr.open_dataset(path, engine="h5netcdf") as a, \
                    xr.open_dataset(path, engine="netcdf4") as b:
                for name, data in f.items():
                    self.assertEqual(a[name].dims, b[name].dims, name)
                    self.assertTrue(same(a[name].values, b[name].values), name)
                    if h5py.check_string_dtype(data.dtype):
                        raw = data.asstr()[()]
                    else:
                        raw = np.asarray(data[()], dtype="f8")
                        fill = data.attrs.get("_FillValue")
                        if fill is not None and data.dtype.kind == "i":
                            raw[raw == fill[0]] = np.nan
                    self.assertTrue(same(a[name].values, raw), name)
                    if "dtype" in data.attrs:
                        self.assertEqual(a[name].dtype, bool)

    def test_command_line_dumps_agree_with_h5py(self):
        path = self.paths["zstd", "probe"]
        with h5py.File(path, "r") as f:
            wanted = f["tv"][()].ravel()
        dump = subprocess.run(["ncdump", "-p", "9,17", "-v", "tv", path], check=True,
                              capture_output=True, text=True).stdout
        body = dump.rsplit("tv =", 1)[1].split(";")[0]
        got = np.array([float(x.strip().replace("_", "nan").replace("NaNf", "nan"))
                        for x in body.split(",")])
        self.assertTrue(same(got.astype("f4"), wanted))
        dump = subprocess.run(["h5dump", "-y", "-w", "1", "-m", "%.9g", "-d", "/tv", path],
                              check=True, capture_output=True, text=True).stdout
        body = dump.split("DATA {", 1)[1].split("}")[0]
        self.assertTrue(same(np.array([float(x) for x in body.split(",")], "f4"), wanted))

    def test_deflate_needs_no_plugin(self):
        read = ("import h5py,sys,numpy as np\n"
                "with h5py.File(sys.argv[1], 'r') as f: print(np.nansum(f['tv'][()]))")
        for compression, readable in (("deflate", True), ("zstd", False)):
            done = subprocess.run([sys.executable, "-c", read, self.paths[compression, "probe"]],
                                  env=WITHOUT_PLUGIN, capture_output=True, text=True)
            self.assertEqual(done.returncode == 0, readable, done.stderr)

    def test_flags_and_booleans(self):
        with h5py.File(self.paths["zstd", "probe"], "r") as f:
            self.assertEqual(list(f["status"].attrs["flag_values"]), [0, 1, 2])
            self.assertEqual(f["status"].attrs["flag_meanings"], "ok skipped failed")
            self.assertEqual(f["control"].dtype, np.int8)
            self.assertEqual(f["control"].attrs["dtype"], "bool")

    def test_equal_runs_give_equal_bytes(self):
        paths = [written(self.folder.name, "zstd", name=name) for name in ("one.h5", "two.h5")]
        self.assertTrue(filecmp.cmp(*paths, shallow=False))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
