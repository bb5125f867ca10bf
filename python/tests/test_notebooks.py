"""Every notebook runs from start to end, and its outputs are the small ones that were committed."""

from __future__ import annotations

from pathlib import Path

import pytest

nbclient = pytest.importorskip("nbclient")
nbformat = pytest.importorskip("nbformat")
pytest.importorskip("matplotlib")

FOLDER = Path(__file__).resolve().parents[2] / "examples/notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))


@pytest.mark.notebooks
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_notebook(path: Path) -> None:
    if "capturing" in path.name:
        pytest.importorskip("transformers")
    notebook = nbformat.read(path, as_version=4)
    nbclient.NotebookClient(notebook, timeout=600, kernel_name="python3",
                            resources={"metadata": {"path": str(FOLDER)}}).execute()
    shown = [o for c in notebook.cells if c.cell_type == "code" for o in c.outputs]
    assert any("image/png" in o.get("data", {}) for o in shown)
    assert not any(o.output_type == "error" for o in shown)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_committed_outputs(path: Path) -> None:
    """Committed with its figures, and small."""
    notebook = nbformat.read(path, as_version=4)
    assert any("image/png" in o.get("data", {}) for c in notebook.cells if c.cell_type == "code"
               for o in c.outputs), "run the notebook and save it"
    assert path.stat().st_size < 300_000


def test_there_are_notebooks() -> None:
    assert len(NOTEBOOKS) == 4
