"""The adapter around a model: what it leaves behind, what it refuses, stop and resume."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
tf = pytest.importorskip("transformers")

import attnstress  # noqa: E402
import h5py  # noqa: E402
from attnstress import capturing  # noqa: E402
from attnstress.hf import positions, reference, rope, session  # noqa: E402
from models import COMMON, FAMILIES, _make  # noqa: E402


@pytest.fixture(scope="module")
def llama() -> Any:
    return FAMILIES["llama-llama3"]()


def ids(count: int = 1, tokens: int = 40) -> Any:
    return torch.randint(3, 199, (count, tokens), generator=torch.Generator().manual_seed(3))


def empty(folder: Path) -> bool:
    return not [p for p in folder.iterdir() if p.name.startswith("c.h5")]


def test_the_model_is_left_as_it_was(llama: Any, tmp_path: Path) -> None:
    with torch.no_grad():
        before = llama(ids()).logits
    llama.train()
    attnstress.capture(llama, ids(), tmp_path / "c.h5", progress=False)
    assert llama.training and llama.config._attn_implementation == "sdpa"
    llama.eval()
    with torch.no_grad():
        assert torch.equal(before, llama(ids()).logits)
    made = llama.generate(ids(), max_new_tokens=4, do_sample=False, use_cache=True)
    assert made.shape[1] == 44


def test_capture_does_not_change_what_the_model_says(llama: Any, tmp_path: Path) -> None:
    with torch.no_grad():
        top = int(llama(ids()).logits[0, -1].argmax())
    path = attnstress.capture(llama, ids(), tmp_path / "c.h5", progress=False)
    with h5py.File(path) as f:
        assert f["samples/0"].attrs["model_top_token_id"] == top


def test_after_generation(llama: Any, tmp_path: Path) -> None:
    """A model that has just generated with a cache is captured without one."""
    made = llama.generate(ids(), max_new_tokens=8, do_sample=False, use_cache=True)
    path = attnstress.capture(llama, made, tmp_path / "c.h5", probes=8, progress=False)
    attnstress.verify(path)
    with h5py.File(path) as f:
        assert f["samples/0"].attrs["n_keys"] == made.shape[1]


@pytest.mark.parametrize("extra, words", [
    ({"past_key_values": object()}, "a cache"),
    ({"pixel_values": object()}, "images"),
    ({"encoder_hidden_states": object()}, "cross attention"),
])
def test_inputs_that_are_refused(llama: Any, tmp_path: Path, extra: dict[str, Any], words: str) -> None:
    with pytest.raises(attnstress.Unsupported, match=words):
        attnstress.capture(llama, {"input_ids": ids(), **extra}, tmp_path / "c.h5", progress=False)
    assert empty(tmp_path)


@pytest.mark.parametrize("change, words", [
    (dict(inputs="ids", spans=[("gold", 30, 60)]), "the text has 40"),
    (dict(inputs="ids", spans=[("gold", 9, 9)]), "characters \\[9, 9\\)"),
    (dict(inputs="ids", spans=[("gold", 1, 3), ("gold", 5, 7)]), "several spans are named gold"),
    (dict(inputs="ids", spans={"gold": "x"}), "regular expressions need text"),
    (dict(inputs="ids", layers=[7]), "layers 0 to 2"),
    (dict(inputs="ids", layers="most"), "use \"all\""),
    (dict(inputs="ids", probes="question"), "no span has role or name"),
    (dict(inputs="ids", probes=0), "at least 1"),
    (dict(inputs="ids", probes=[99]), "not all rows of 40 tokens"),
    (dict(inputs="ids", readouts="auto"), "needs prompts with an answer"),
    (dict(inputs="ids", readouts={"a": (999, 1)}), "not among 199"),
    (dict(inputs="text"), "text needs tokenizer"),
    (dict(inputs=[]), "no input"),
    (dict(inputs=[[3, 500]]), "token id 500"),
    (dict(inputs=[list(range(3, 190)) * 3]), "512 positions"),
    (dict(inputs="ids", ids=["a", "b"]), "2 ids for 1"),
])
def test_arguments_that_are_refused(llama: Any, tmp_path: Path, change: dict[str, Any], words: str) -> None:
    inputs = {"ids": ids(), "text": "hello"}.get(change["inputs"]) if isinstance(
        change["inputs"], str) else change["inputs"]
    rest = {k: v for k, v in change.items() if k != "inputs"}
    with pytest.raises(attnstress.BadInput, match=words):
        attnstress.capture(llama, inputs, tmp_path / "c.h5", progress=False, **rest)
    assert empty(tmp_path)


def test_holes_in_the_attention_mask(llama: Any, tmp_path: Path) -> None:
    mask = torch.ones_like(ids())
    mask[0, 5] = 0
    with pytest.raises(attnstress.Unsupported, match="holes"):
        attnstress.capture(llama, {"input_ids": ids(), "attention_mask": mask}, tmp_path / "c.h5")


def test_right_padding_is_dropped(llama: Any, tmp_path: Path) -> None:
    x, mask = ids(), torch.ones_like(ids())
    mask[0, 30:] = 0
    path = attnstress.capture(llama, {"input_ids": x, "attention_mask": mask}, tmp_path / "c.h5",
                              progress=False)
    attnstress.verify(path)
    with h5py.File(path) as f:
        assert f["samples/0"].attrs["n_keys"] == 30


def test_model_kinds_that_are_refused(tmp_path: Path) -> None:
    bloom = _make(tf.BloomConfig(vocab_size=199, hidden_size=64, n_layer=2, n_head=4), "eager")
    t5 = tf.T5ForConditionalGeneration(tf.T5Config(vocab_size=199, d_model=32, d_kv=8, d_ff=32,
                                                   num_layers=1, num_heads=2))
    mamba = _make(tf.MambaConfig(vocab_size=199, hidden_size=64, num_hidden_layers=2), "eager")
    for model, words in ((bloom, "layers 0, 1"), (t5, "encoder-decoder"), (mamba, "nothing to capture"),
                         (torch.nn.Linear(2, 2), "no transformers model")):
        with pytest.raises(attnstress.BadInput, match=words):
            attnstress.capture(model, ids(), tmp_path / "c.h5", progress=False)
        assert empty(tmp_path)


def test_flash_kernels_are_refused(llama: Any, tmp_path: Path) -> None:
    llama.config._attn_implementation_internal = "flash_attention_2"
    try:
        with pytest.raises(attnstress.Unsupported, match="flash_attention_2.*attn_implementation='sdpa'"):
            attnstress.capture(llama, ids(), tmp_path / "c.h5", progress=False)
    finally:
        llama.config._attn_implementation_internal = "sdpa"


def test_tensor_parallel_is_refused(tmp_path: Path) -> None:
    model = FAMILIES["llama-linear"]()
    model._tp_size = 2
    with pytest.raises(attnstress.Unsupported, match="tensor-parallel"):
        attnstress.capture(model, ids(), tmp_path / "c.h5", progress=False)


class _Attention(torch.nn.Module):
    is_causal, layer_idx = True, 0


@pytest.mark.parametrize("keyword, words", [
    ({"position_bias": torch.ones(1)}, "position_bias=a tensor"), ({"head_gate": 0.5}, "head_gate=0.5"),
    ({"dropout": 0.1}, "eval mode"),
])
def test_unknown_keywords_are_refused(keyword: dict[str, Any], words: str) -> None:
    q = torch.ones(1, 2, 3, 4)
    with pytest.raises(attnstress.Unsupported, match=words):
        session.refuse_unknown(_Attention(), 0, q, q, q, keyword)


def test_cross_attention_and_shards_are_refused() -> None:
    q, k = torch.ones(1, 4, 3, 4), torch.ones(1, 2, 5, 4)
    with pytest.raises(attnstress.Unsupported, match="cross attention or a cache"):
        session.refuse_unknown(_Attention(), 0, q, k, k, {})
    shard = _Attention()
    shard.config = type("C", (), {"num_attention_heads": 8})()
    with pytest.raises(attnstress.Unsupported, match="4 of 8 query heads"):
        session.refuse_unknown(shard, 0, q, q, q, {})


def test_an_attention_that_does_something_else_is_caught(tmp_path: Path) -> None:
    """A model whose own attention ignores what it was given must not be captured as if it had not."""
    model = FAMILIES["llama-eager"]()
    home = __import__("sys").modules[type(model.model.layers[0].self_attn).__module__]
    own = home.eager_attention_forward

    def odd(module: Any, q: Any, k: Any, v: Any, mask: Any, **rest: Any) -> Any:
        out, weights = own(module, q, k, v, mask, **rest)
        return out * 1.05, weights

    home.eager_attention_forward = odd
    try:
        with pytest.raises(attnstress.Unsupported, match="differs from a double reference"):
            attnstress.capture(model, ids(), tmp_path / "c.h5", progress=False)
    finally:
        home.eager_attention_forward = own
    assert empty(tmp_path)


def test_a_custom_mask_is_stored_as_a_plane() -> None:
    """reference.mask_rows on boolean, additive and absent masks."""
    rows = torch.tensor([1, 2])
    low = torch.finfo(torch.float32).min
    additive = torch.zeros(1, 1, 3, 3)
    additive[0, 0, 2, 0], additive[0, 0, 2, 1] = low, -0.5
    got = reference.mask_rows(additive, rows, 3, False, 0)
    assert got.legal.tolist() == [[True] * 3, [False, True, True]]
    assert got.bias is not None and got.bias[0, 1].tolist() == [0.0, -0.5, 0.0]
    assert reference.mask_rows(None, rows, 3, True, 0).legal.tolist() == [[True, True, False], [True] * 3]
    heads = torch.ones(1, 2, 3, 3, dtype=torch.bool)
    heads[0, 1, 2, 0] = False
    with pytest.raises(attnstress.Unsupported, match="different masks"):
        reference.mask_rows(heads, rows, 3, True, 0)


def test_packed_sequences_keep_their_mask(llama: Any, tmp_path: Path) -> None:
    position = torch.cat([torch.arange(20), torch.arange(20)])[None]
    path = attnstress.capture(llama, {"input_ids": ids(), "position_ids": position}, tmp_path / "c.h5",
                              progress=False)
    with h5py.File(path) as f:
        keep = f["samples/0/layers/0/keep"][()]
        assert keep[:, :20].sum() == 0 and keep[-1, 20:].all()


def test_stop_and_resume(llama: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C in the third of five samples, then the same call: equal to a capture in one go."""
    inputs, own, calls = ids(5), session.Session.layer, []

    def stops(self: Any, module: Any, index: int, *rest: Any) -> Any:
        calls.append(index)
        if len(calls) == 2 * 3 + 2:
            raise KeyboardInterrupt
        return own(self, module, index, *rest)

    monkeypatch.setattr(session.Session, "layer", stops)
    with pytest.raises(attnstress.Interrupted, match="2 of 5 samples are kept") as stopped:
        attnstress.capture(llama, inputs, tmp_path / "c.h5", progress=False)
    assert isinstance(stopped.value, KeyboardInterrupt)
    assert llama.config._attn_implementation == "sdpa"
    assert not (tmp_path / "c.h5").exists()
    with pytest.raises(attnstress.BadInput, match="parts of another capture.*inputs"):
        attnstress.capture(llama, ids(4), tmp_path / "c.h5", progress=False)
    calls[:] = [0] * 99
    resumed = attnstress.capture(llama, inputs, tmp_path / "c.h5", progress=False)
    assert len(calls) == 99 + 3 * 3
    whole = attnstress.capture(llama, inputs, tmp_path / "w.h5", progress=False)
    assert [p.name for p in sorted(tmp_path.iterdir())] == ["c.h5", "w.h5"]
    assert resumed.read_bytes() == whole.read_bytes()


def test_existing_file_and_missing_folder(llama: Any, tmp_path: Path) -> None:
    path = attnstress.capture(llama, ids(), tmp_path / "c.h5", progress=False)
    with pytest.raises(attnstress.BadInput, match="exists"):
        attnstress.capture(llama, ids(), path, progress=False)
    attnstress.capture(llama, ids(), path, overwrite=True, progress=False)
    with pytest.raises(attnstress.BadInput, match="does not exist"):
        attnstress.capture(llama, ids(), tmp_path / "none" / "c.h5", progress=False)


def test_readouts_and_residual(llama: Any, tmp_path: Path) -> None:
    path = attnstress.capture(llama, ids(), tmp_path / "c.h5", readouts={"x": (5, 9), "y": (5, None)},
                              residual=True, progress=False)
    weight = llama.lm_head.weight.detach()
    with h5py.File(path) as f:
        np.testing.assert_allclose(f["readouts/direction"][0], (weight[5] - weight[9]).numpy())
        np.testing.assert_allclose(f["readouts/direction"][1], (weight[5] - weight.mean(0)).numpy(),
                                   rtol=1e-5, atol=1e-7)
        w_o, out = f["layers/1/w_o"][()], f["samples/0/layers/1/out"][()]
        mine = np.einsum("hpd,hdm->pm", out, w_o)
    seen: list[Any] = []
    hook = llama.model.layers[1].self_attn.o_proj.register_forward_hook(lambda m, i, o: seen.append(o))
    with torch.no_grad():
        llama(ids())
    hook.remove()
    np.testing.assert_allclose(mine, seen[0][0, -4:].numpy(), rtol=1e-3, atol=1e-4)
    without = attnstress.capture(llama, ids(), tmp_path / "d.h5", residual=False, progress=False)
    with h5py.File(without) as f:
        assert "w_o" not in f["layers/1"]


def test_layers_and_probes(llama: Any, tmp_path: Path) -> None:
    path = attnstress.capture(llama, ids(), tmp_path / "c.h5", layers=[0, -1], probes="question",
                              spans=[("question", 10, 14)], progress=False)
    with h5py.File(path) as f:
        assert list(f["layers"]) == ["0", "2"]
        assert f["samples/0/probes/index"][()].tolist() == [10, 11, 12, 13, 39]
        roles = [x.decode() for x in f["samples/0/probes/role"][()]]
        assert roles == ["question"] * 4 + ["answer"]
    attnstress.verify(path)


def test_weights_hash_sees_a_change() -> None:
    a, b = FAMILIES["llama-linear"](), FAMILIES["llama-linear"]()
    assert capturing._weights_hash(a) == capturing._weights_hash(b)
    with torch.no_grad():
        b.lm_head.weight[3, 3] += 1
    assert capturing._weights_hash(a) != capturing._weights_hash(b)


def test_dynamic_frequencies_are_flagged(tmp_path: Path) -> None:
    model = _make(tf.LlamaConfig(**COMMON, rope_parameters={
        "rope_type": "dynamic", "rope_theta": 10000.0, "factor": 4.0}))
    path = attnstress.capture(model, ids(), tmp_path / "c.h5", progress=False)
    with h5py.File(path) as f:
        assert f["layers/0"].attrs["rope_dynamic"] == 1


def test_normalised_after_the_rotation_does_not_move(tmp_path: Path) -> None:
    """HunYuan scales dimensions after rotating: moving such keys by the table would be wrong."""
    model = _make(tf.HunYuanDenseV1Config(**COMMON, head_dim=16))
    path = attnstress.capture(model, ids(), tmp_path / "c.h5", progress=False)
    attnstress.verify(path)
    with h5py.File(path) as f:
        assert f["layers/0"].attrs["positions"] == "absolute" and "inv_freq" not in f["layers/0"]


def test_positions_in_the_embedding_are_seen(tmp_path: Path) -> None:
    """CTRL adds sinusoids that no module is named after: its keys change with the position, though
    nothing rotates them, so they must not pass for keys that may stand anywhere."""
    model = _make(tf.CTRLConfig(vocab_size=199, n_positions=512, n_embd=64, dff=96, n_layer=2, n_head=4))
    moved = {"input_ids": ids(), "position_ids": torch.arange(40)[None] + 9}
    paths = [attnstress.capture(model, x, tmp_path / name, progress=False, residual=False)
             for x, name in ((ids(), "c.h5"), (moved, "d.h5"))]
    attnstress.verify(paths[0])
    with h5py.File(paths[0]) as a, h5py.File(paths[1]) as b:
        assert np.abs(a["samples/0/layers/0/k"][()] - b["samples/0/layers/0/k"][()]).max() > 0.1
        assert a["layers/0"].attrs["positions"] == "absolute"


def test_positions_that_cannot_be_seen_do_not_move() -> None:
    class Blind(torch.nn.Module):
        config = tf.LlamaConfig(**COMMON)

        def get_input_embeddings(self) -> torch.nn.Module:
            return torch.nn.Embedding(9, 2)

        def forward(self, input_ids: Any) -> Any:
            raise RuntimeError("too short")

    assert positions.absolute(Blind())
    assert not positions.absolute(FAMILIES["llama-linear"]())
    assert positions.absolute(FAMILIES["gpt2"]())


def _llama4(floor_scale: int) -> Any:
    return _make(tf.Llama4TextConfig(
        **COMMON, head_dim=16, intermediate_size_mlp=96, num_local_experts=2, floor_scale=floor_scale,
        layer_types=["chunked_attention", "full_attention", "full_attention"], no_rope_layers=[1, 0, 0]))


def _ministral3(original: int) -> Any:
    return _make(tf.Ministral3Config(**COMMON, head_dim=16, sliding_window=None, rope_parameters={
        "rope_type": "default", "rope_theta": 10000.0, "llama_4_scaling_beta": 0.3,
        "original_max_position_embeddings": original}))


@pytest.mark.parametrize("make, layer", [(_llama4, "1"), (_ministral3, "0")])
def test_queries_scaled_by_position_do_not_move(make: Any, layer: str, tmp_path: Path) -> None:
    """Below the first step rows may be moved up to it; a query beyond it may not be moved at all."""
    below = attnstress.capture(make(64), ids(), tmp_path / "b.h5", progress=False)
    beyond = attnstress.capture(make(16), ids(), tmp_path / "c.h5", progress=False)
    attnstress.verify(below)
    attnstress.verify(beyond)
    with h5py.File(below) as a, h5py.File(beyond) as b:
        kind = "none" if make is _llama4 else "rope"
        assert a[f"layers/{layer}"].attrs["positions"] == kind
        assert a[f"layers/{layer}"].attrs["max_position"] in (63, 64)
        assert b[f"layers/{layer}"].attrs["positions"] == "absolute"
        if make is _llama4:
            assert dict(b["layers/0"].attrs)["positions"] == "rope"


@pytest.mark.parametrize("side", ["query", "key"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_scaled_after_the_rotation_does_not_move(side: str, dtype: Any) -> None:
    """A factor of each dimension does not commute with a turn, in queries as little as in keys; a
    factor of each row does."""
    g = torch.Generator().manual_seed(3)
    table = rope.Table(1e4 ** (-torch.arange(8, dtype=torch.float64) / 8), "inv_freq", "default")
    position = torch.arange(30)
    before = {"query": torch.randn(1, 4, 30, 16, generator=g), "key": torch.randn(1, 2, 30, 16, generator=g)}
    calls = {k: rope.Rotation(x.to(dtype), rope.rotate(
        x.double(), position[:, None] * table.inv_freq, "half").to(dtype)) for k, x in before.items()}
    dims, rows = torch.linspace(0.9, 1.1, 16).to(dtype), torch.linspace(1, 2, 30)[:, None].to(dtype)

    def found(factor: Any) -> Any:
        entering = {k: c.after[0] * (factor if k == side else 1) for k, c in calls.items()}
        return rope.recognise([calls["query"], calls["key"]], entering["query"], entering["key"], position,
                              [table], 0)

    assert found(rows).table is table and found(rows).layout == "half"
    assert found(dims).table is None
