"""Every family: the program proves the capture, padded and unpadded inputs give the same rows, and
the stored frequencies move a key to where the model itself puts it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

import attnstress  # noqa: E402
import h5py  # noqa: E402
from models import FAMILIES, WINDOW  # noqa: E402

TOKENS, PAD = 48, 7
SPANS = [[("gold", 4, 9), ("question", 40, 44)]] * 2
# window or chunk, position kind and layout that the configuration of each family says
EXPECTED: dict[str, list[tuple[int, int, str, str]]] = {
    "qwen2": [(0, 0, "rope", "half")] + [(WINDOW, 0, "rope", "half")] * 2,
    "gemma2": [(WINDOW, 0, "rope", "half"), (0, 0, "rope", "half"), (WINDOW, 0, "rope", "half")],
    "gemma3": [(WINDOW, 0, "rope", "half")] * 2 + [(0, 0, "rope", "half")],
    "mistral": [(WINDOW, 0, "rope", "half")] * 3,
    "cohere": [(0, 0, "rope", "interleaved")] * 3,
    "cohere2": [(WINDOW, 0, "rope", "interleaved"), (0, 0, "none", "none"),
                (WINDOW, 0, "rope", "interleaved")],
    "smollm3": [(0, 0, "rope", "half"), (0, 0, "none", "none"), (0, 0, "rope", "half")],
    "gpt2": [(0, 0, "absolute", "none")] * 3,
    "llama4": [(0, WINDOW, "rope", "interleaved")] * 2 + [(0, 0, "none", "none")],
}


def _ids() -> Any:
    return torch.randint(3, 199, (2, TOKENS), generator=torch.Generator().manual_seed(0))


def _load(f: h5py.File, path: str) -> np.ndarray:
    data = f[path][()]
    kind = f[path].attrs["storage_dtype"]
    if kind == "bfloat16":
        return (data.astype(np.uint32) << 16).view(np.float32)
    return data.view(np.float16).astype(np.float32) if kind == "float16" else data


@pytest.mark.parametrize("name", FAMILIES)
def test_verify_passes(name: str, tmp_path: Path) -> None:
    model, ids = FAMILIES[name](), _ids()
    mask = torch.ones_like(ids)
    mask[0, :PAD] = 0
    padded = attnstress.capture(model, {"input_ids": ids, "attention_mask": mask}, tmp_path / "p.h5",
                                spans=[[("gold", 4, 9)]] * 2, residual=True, progress=False)
    plain = attnstress.capture(model, [ids[0, PAD:], ids[1]], tmp_path / "u.h5",
                               spans=[[("gold", 4, 9)]] * 2, residual=True, progress=False)
    for path in (padded, plain):
        report = attnstress.verify(path)
        assert "parity" in str(report)
    with h5py.File(padded) as a, h5py.File(plain) as b:
        assert a["samples/0"].attrs["n_keys"] == TOKENS - PAD
        for layer in a["layers"]:
            attributes = dict(a[f"layers/{layer}"].attrs)
            assert attributes == dict(b[f"layers/{layer}"].attrs)
            assert attributes["causal"] == 1
            if name in EXPECTED:
                got = (int(attributes["window"]), int(attributes["chunk"]), attributes["positions"],
                       attributes["rope_layout"])
                assert got == EXPECTED[name][int(layer)]
            tolerance = 0.06 if name == "llama-bf16" else 0.01 if name == "llama-fp16" else 1e-4
            for sample in ("0", "1"):
                for tensor in ("q", "k", "v"):
                    where = f"samples/{sample}/layers/{layer}/{tensor}"
                    x, y = _load(a, where), _load(b, where)
                    assert np.abs(x - y).max() <= tolerance * np.abs(y).max(), where


def _rotate(x: np.ndarray, delta: int, inv_freq: np.ndarray, layout: str) -> np.ndarray:
    """Written out here from docs/capture-format.md, apart from the package's own rotation."""
    r = 2 * len(inv_freq)
    y = x.astype(np.float64).copy()
    for j, f in enumerate(inv_freq):
        a, b = (j, j + r // 2) if layout == "half" else (2 * j, 2 * j + 1)
        c, s = np.cos(delta * f), np.sin(delta * f)
        y[..., a], y[..., b] = c * x[..., a] - s * x[..., b], s * x[..., a] + c * x[..., b]
    return y


@pytest.mark.parametrize("name", [n for n in FAMILIES if n not in ("gpt2", "llama-bf16", "llama-fp16")])
def test_stored_frequencies_move_keys_as_the_model_does(name: str, tmp_path: Path) -> None:
    """Layer 0 sees embeddings alone: the same tokens at later positions are the same keys, moved."""
    model, ids, delta = FAMILIES[name](), _ids()[:1], 100 // WINDOW * WINDOW
    at = torch.arange(TOKENS)[None]
    paths = [attnstress.capture(model, {"input_ids": ids, "position_ids": at + d}, tmp_path / f"{d}.h5",
                                layers=[0], progress=False) for d in (0, delta)]
    with h5py.File(paths[0]) as a, h5py.File(paths[1]) as b:
        layer = a["layers/0"]
        assert layer.attrs["positions"] == "rope"
        for tensor in ("q", "k"):
            x, y = (_load(f, f"samples/0/layers/0/{tensor}") for f in (a, b))
            moved = _rotate(x, delta, layer["inv_freq"][()], layer.attrs["rope_layout"])
            assert np.abs(moved - y).max() <= 2e-4 * np.abs(y).max()
            assert np.abs(x - y).max() > 0.05 * np.abs(y).max()


def test_a_perturbation_runs_on_a_captured_model(tmp_path: Path) -> None:
    path = attnstress.capture(FAMILIES["gemma3"](), _ids(), tmp_path / "c.h5", spans=SPANS, progress=False)
    suite = tmp_path / "s.yaml"
    suite.write_text(f"""suite: small
version: 1
captures: [{path}]
perturbations:
  - {{kind: duplicates, positions: [overlay, shift], copies: [1, 2]}}
""")
    result = attnstress.open(attnstress.run(suite, tmp_path / "r.h5"))
    assert float(result.intrusion.max()) > 0
    assert result.sizes["case"] == 2 * 2 * 2 * 2
