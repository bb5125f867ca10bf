"""Text with a real tokenizer: marks, patterns, prompts, answers, and pairs with inserted text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
tf = pytest.importorskip("transformers")

import attnstress  # noqa: E402
import h5py  # noqa: E402
from attnstress import prompts  # noqa: E402


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    """Words, with a BOS token in front."""
    from tokenizers import Tokenizer, models, pre_tokenizers, processors

    counter = lambda t: len(t.split())
    texts = [p.text for b in (prompts.needle, prompts.updated) for p in b(counter, length=2000, count=20)]
    split = pre_tokenizers.Whitespace()
    words = sorted({w for t in [*texts, "The code of room seven is not eight nine"]
                    for w, _ in split.pre_tokenize_str(t)})
    made = Tokenizer(models.WordLevel({w: i for i, w in enumerate(["<unk>", "<s>", *words])}, unk_token="<unk>"))
    made.pre_tokenizer = split
    made.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    return tf.PreTrainedTokenizerFast(tokenizer_object=made, unk_token="<unk>", bos_token="<s>")


@pytest.fixture(scope="module")
def model(tokenizer: Any) -> Any:
    torch.manual_seed(0)
    return tf.LlamaForCausalLM(tf.LlamaConfig(
        vocab_size=len(tokenizer), hidden_size=32, intermediate_size=48, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=400))


def spans_of(f: h5py.File, sample: int = 0) -> dict[str, str]:
    group = f[f"samples/{sample}"]
    text = [x.decode() for x in group["token_text"][()]]
    s = group["spans"]
    return {n.decode(): " ".join(text[a:b]) for n, a, b in zip(s["name"][()], s["start"][()], s["stop"][()])}


def test_marks(model: Any, tokenizer: Any, tmp_path: Path) -> None:
    text = "The code of room [[gold: seven]] is [[distractor/near: not eight]]. [[question: The code is]]"
    path = attnstress.capture(model, text, tmp_path / "c.h5", tokenizer=tokenizer, progress=False)
    attnstress.verify(path)
    with h5py.File(path) as f:
        assert spans_of(f) == {"bos": "<s>", "gold": "seven", "near": "not eight", "question": "The code is"}
        roles = [x.decode() for x in f["samples/0/spans/role"][()]]
        assert sorted(roles) == ["distractor", "gold", "question", "sink"]


def test_patterns_and_offsets(model: Any, tokenizer: Any, tmp_path: Path) -> None:
    text = "The code of room seven is eight"
    path = attnstress.capture(model, [text, text], tmp_path / "c.h5", tokenizer=tokenizer, progress=False,
                              spans=[{"gold": r"room \w+"}, [("x", "gold", 12, 16)]])
    with h5py.File(path) as f:
        assert spans_of(f, 0)["gold"] == "room seven" and spans_of(f, 1)["x"] == "room"
    with pytest.raises(attnstress.BadInput, match="nothing in the text matches"):
        attnstress.capture(model, text, tmp_path / "d.h5", tokenizer=tokenizer, spans={"gold": "zebra"})


def test_a_template_that_has_bos_gets_no_second_one(model: Any, tokenizer: Any, tmp_path: Path) -> None:
    path = attnstress.capture(model, "<s> The code of room seven", tmp_path / "c.h5", tokenizer=tokenizer,
                              progress=False)
    with h5py.File(path) as f:
        assert (f["samples/0/tokens"][()] == 1).sum() == 1


def test_prompts_answers_and_readouts(model: Any, tokenizer: Any, tmp_path: Path) -> None:
    made = prompts.needle(tokenizer, length=200, count=2)
    path = attnstress.capture(model, made, tmp_path / "c.h5", tokenizer=tokenizer, readouts="auto",
                              progress=False)
    weight = model.lm_head.weight.detach().numpy()
    vocabulary = tokenizer.get_vocab()
    with h5py.File(path) as f:
        for i, p in enumerate(made):
            sample = f[f"samples/{i}"]
            assert sample.attrs["answer"] == p.answer and sample.attrs["id"] == p.id
            ids = torch.tensor(sample["tokens"][()][None].astype("i8"))
            with torch.no_grad():
                chance = model(ids).logits[0, -1].softmax(-1)
            assert sample.attrs["p_answer"] == pytest.approx(float(chance[vocabulary[p.answer]]), rel=1e-4)
            direction = weight[vocabulary[p.answer]] - weight[vocabulary[p.foil]]
            np.testing.assert_allclose(f["readouts/direction"][i], direction, rtol=1e-6)
            spans = spans_of(f, i)
            assert spans["gold"].endswith(f"is {p.answer}") and spans["question"].endswith("is")
            assert sample.attrs["n_keys"] <= 200


def test_inserted_text_is_aligned(model: Any, tokenizer: Any, tmp_path: Path) -> None:
    made = prompts.with_insertions(tokenizer, length=180, count=1, counts=(1, 3))
    path = attnstress.capture(model, made, tmp_path / "c.h5", tokenizer=tokenizer, progress=False)
    with h5py.File(path) as f:
        base = f["samples/0/tokens"][()]
        for i, p in enumerate(made[1:], 1):
            sample = f[f"samples/{i}"]
            index, tokens = sample["base_index"][()], sample["tokens"][()]
            assert sample.attrs["variant_of"] == made[0].id
            old = index >= 0
            assert index[old].tolist() == list(range(len(base)))
            np.testing.assert_array_equal(tokens[old], base)
            (a, b), = p.inserted
            new = tokenizer(p.text[a:b], add_special_tokens=False)["input_ids"]
            assert tokens[~old].tolist() == new
    with pytest.raises(attnstress.BadInput, match="must be captured before"):
        attnstress.capture(model, made[1:], tmp_path / "d.h5", tokenizer=tokenizer, progress=False)


def test_refusals(model: Any, tokenizer: Any, tmp_path: Path) -> None:
    with pytest.raises(attnstress.BadInput, match="made for 400 positions"):
        attnstress.capture(model, "room " * 500, tmp_path / "c.h5", tokenizer=tokenizer)
    with pytest.raises(attnstress.BadInput, match="not closed"):
        attnstress.capture(model, "the [[gold: code", tmp_path / "c.h5", tokenizer=tokenizer)
    with pytest.raises(attnstress.BadInput, match="two samples have the id"):
        attnstress.capture(model, ["room", "seven"], tmp_path / "c.h5", tokenizer=tokenizer, ids=["a", "a"])
    slow = type("SlowTokenizer", (), {"is_fast": False})()
    with pytest.raises(attnstress.Unsupported, match="no character offsets"):
        attnstress.capture(model, "room", tmp_path / "c.h5", tokenizer=slow)
    assert list(tmp_path.iterdir()) == []
