"""Writer, program calls and reader together, without torch: what is written here, the program proves."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import attnstress
from attnstress import CaptureWriter, LayerInfo, SampleInfo, Span, Tensor

RNG = np.random.default_rng(4)
HEADS, KV, D, N, P = 4, 2, 8, 64, 3


def softmax_reference(q: np.ndarray, k: np.ndarray, v: np.ndarray, scale: float) -> tuple[Any, Any]:
    z = np.einsum("hpd,hnd->hpn", q.astype("f8"), np.repeat(k, HEADS // KV, 0).astype("f8")) * scale
    z[:, np.arange(N)[None] > np.arange(N - P, N)[:, None]] = -np.inf
    top = z.max(-1, keepdims=True)
    lse = np.log(np.exp(z - top).sum(-1)) + top[..., 0]
    return np.exp(z - lse[..., None]) @ np.repeat(v, HEADS // KV, 0).astype("f8"), lse


def write(path: Path, samples: int = 2, **change: Any) -> Path:
    writer = CaptureWriter(path, {"model_id": "made", "checkpoint": "", "weights_hash": "", "tokenizer_hash": "",
                                  "producer": "test"}, {"job": 1})
    for i in range(samples):
        info = SampleInfo(id=f"a{i}", tokens=np.arange(N), position=np.arange(N),
                          probe_index=np.arange(N - P, N), probe_role=["question"] * (P - 1) + ["answer"],
                          spans=[Span("gold", "gold", 4, 8), Span("question", "question", 60, 63)],
                          token_text=[f"t{j}ä" for j in range(N)], **change)
        q, k, v = (RNG.standard_normal(s).astype("f4") for s in ((HEADS, P, D), (KV, N, D), (KV, N, D)))
        out, lse = softmax_reference(q, k, v, 0.5)
        layers = {0: LayerInfo(HEADS, KV, D, D, 0.5)}
        with writer.sample(i, info, layers) as s:
            s.layer(0, *(Tensor(x, "float32") for x in (q, k, v)), out=out, lse=lse)
    return writer.finish(samples)


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("capture") / "made.h5")


def suite(folder: Path, capture: Path, gate: float | None = None) -> Path:
    body: dict[str, Any] = {
        "suite": "made", "version": 1, "captures": [str(capture)],
        "perturbations": [{"kind": "duplicates", "positions": "overlay", "copies": [1, 2]},
                          {"kind": "temperature", "tau": [0.5, 2]}]}
    if gate is not None:
        body["gates"] = [{"name": "g", "metric": "intrusion", "max": gate}]
    path = folder / "s.yaml"
    path.write_text(json.dumps(body))
    return path


def test_the_program_proves_what_is_written(capture: Path) -> None:
    report = attnstress.verify(capture)
    assert "parity" in json.dumps(report)
    assert not capture.with_name(capture.name + ".parts").exists()


def test_a_wrong_output_is_noticed(tmp_path: Path) -> None:
    import h5py

    path = write(tmp_path / "wrong.h5", samples=1)
    with h5py.File(path, "r+") as f:
        f["samples/0/layers/0/out"][1, 0, 0] += 0.01
    with pytest.raises(attnstress.GateFailed):
        attnstress.verify(path)


@pytest.mark.parametrize("change, words", [
    (dict(base_index=np.zeros(3)), "base_index has 3 rows"),
])
def test_samples_that_are_refused(tmp_path: Path, change: dict[str, Any], words: str) -> None:
    with pytest.raises(attnstress.BadInput, match=words):
        write(tmp_path / "c.h5", **change)


@pytest.mark.parametrize("spans, words", [
    ([Span("a", "gold", 5, 5)], "\\[5, 5\\)"), ([Span("a", "gold", 0, 65)], "64 keys"),
    ([Span("a", "gold", 0, 1), Span("a", "gold", 2, 3)], "two spans"),
])
def test_spans_that_are_refused(spans: list[Span], words: str) -> None:
    info = SampleInfo("s", np.arange(64), np.arange(64), np.array([63]), ["answer"], spans)
    with pytest.raises(attnstress.BadInput, match=words):
        info.check()


def test_tensors_have_the_stored_type() -> None:
    with pytest.raises(attnstress.BadInput, match="uint16"):
        Tensor(np.zeros((1, 1, 1), "f4"), "bfloat16")
    with pytest.raises(attnstress.BadInput, match="float8"):
        Tensor(np.zeros((1, 1, 1), "u1"), "float8")


def test_layers_must_agree_between_samples(tmp_path: Path) -> None:
    writer = CaptureWriter(tmp_path / "c.h5", {"model_id": "m"}, {})
    for i, scale in enumerate((0.5, 0.25)):
        info = SampleInfo(f"s{i}", np.arange(N), np.arange(N), np.array([N - 1]), ["answer"])
        with writer.sample(i, info, {0: LayerInfo(HEADS, KV, D, D, scale)}) as s:
            s.layer(0, Tensor(np.ones((HEADS, 1, D), "f4"), "float32"),
                    *(Tensor(np.ones((KV, N, D), "f4"), "float32") for _ in "kv"))
    with pytest.raises(attnstress.BadInput, match="another attention contract"):
        writer.finish(2)
    assert not (tmp_path / "c.h5").exists() and not (tmp_path / "c.h5.tmp").exists()


def test_half_a_sample_leaves_nothing(tmp_path: Path) -> None:
    writer = CaptureWriter(tmp_path / "c.h5", {"model_id": "m"}, {})
    info = SampleInfo("s", np.arange(N), np.arange(N), np.array([N - 1]), ["answer"])
    with pytest.raises(RuntimeError), writer.sample(0, info, {}):
        raise RuntimeError
    assert not writer.has(0) and [p.name for p in writer.parts.iterdir()] == ["job.json"]


def test_run_and_open(capture: Path, tmp_path: Path) -> None:
    result = attnstress.run(suite(tmp_path, capture), tmp_path / "r.h5", threads=1)
    ds = attnstress.open(result)
    treated = ds.where((ds.arm == "treatment") & (ds.kind == "duplicates"), drop=True)
    # the law of copies: n copies of a span of mass G leave G / (1 + n G) of it
    base = ds.base_mass.sel(span="gold").isel(sample=treated.sample_index.astype(int))
    expected = 1 / (1 + treated.copies * base)
    np.testing.assert_allclose(treated.retention.sel(span="gold"), expected, rtol=1e-5)
    assert "perturbation" in ds.coords and ds.tv.dims == ("case", "layer", "head", "probe")


def test_open_with_dask(capture: Path, tmp_path: Path) -> None:
    pytest.importorskip("dask")
    ds = attnstress.open(attnstress.run(suite(tmp_path, capture), tmp_path / "r.h5"), chunks={})
    assert ds.tv.chunks is not None and float(ds.tv.max()) > 0


def test_typed_errors(capture: Path, tmp_path: Path) -> None:
    with pytest.raises(attnstress.GateFailed):
        attnstress.run(suite(tmp_path, capture, gate=0), tmp_path / "r.h5")
    assert attnstress.run(suite(tmp_path, capture, gate=0), tmp_path / "r2.h5", strict=False).exists()
    with pytest.raises(attnstress.BadInput, match="copeis"):
        bad = tmp_path / "bad.yaml"
        bad.write_text(f"suite: x\nversion: 1\ncaptures: [{capture}]\nperturbations:\n"
                       "  - {kind: duplicates, positions: overlay, copeis: 1}\n")
        attnstress.run(bad, tmp_path / "r3.h5")
    with pytest.raises(attnstress.AttnstressError, match="nowhere.h5"):
        attnstress.verify(tmp_path / "nowhere.h5")


def test_plan_and_overrides(capture: Path, tmp_path: Path) -> None:
    path = suite(tmp_path, capture)
    more = attnstress.plan(path, set={"perturbations.duplicates.copies": [1, 2, 3]})
    assert json.dumps(more) != json.dumps(attnstress.plan(path))


def test_compare_of_equal_results(capture: Path, tmp_path: Path) -> None:
    path = suite(tmp_path, capture)
    a, b = (attnstress.run(path, tmp_path / f"{x}.h5") for x in "ab")
    found = attnstress.compare(a, b)
    assert found["exit_status"] in (0, 2)
    with pytest.raises(attnstress.BadInput):
        attnstress.compare(a, tmp_path / "nowhere.h5")


def test_open_says_what_a_file_is(capture: Path, tmp_path: Path) -> None:
    with pytest.raises(attnstress.BadInput, match="is a capture"):
        attnstress.open(capture)
    with pytest.raises(attnstress.BadInput, match="does not exist"):
        attnstress.open(tmp_path / "none.h5")
    text = tmp_path / "x.h5"
    text.write_text("hello")
    with pytest.raises(attnstress.BadInput, match="no HDF5"):
        attnstress.open(text)


def test_no_program(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ATTNSTRESS_PROGRAM", "/nowhere/attnstress")
    with pytest.raises(attnstress.EnvironmentFault, match="no program"):
        attnstress.call("doctor")
