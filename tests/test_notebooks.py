"""Every notebook runs from a clean kernel, and the committed copy shows what it computed."""

import ast
import inspect
import os
import re
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from owkg import metrics, openworld, theory

ROOT = Path(__file__).resolve().parents[1]
PROOFS = sorted((ROOT / "notebooks").glob("*.ipynb"))
LESSONS = sorted((ROOT / "notebooks" / "lessons").glob("*.ipynb"))
# Whose time is compilation, not Monte Carlo.
COMPILED_QUICKLY = {"rank_metrics", "4_benchmark"}
# What a trained model scores depends on the processor in its last digits.
TRAINED = {"4_benchmark"}
# Lines of the longest code that a page of a proof shows; longer code is folded.
SHOWN_LINES = 12
each_notebook = pytest.mark.parametrize("path", [*PROOFS, *LESSONS], ids=lambda path: path.stem)
each_lesson = pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.stem)


def code_cells(notebook):
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def calls(statements):
    """Names of the functions and methods that the statements call."""
    found = (n.func for s in statements for n in ast.walk(s) if isinstance(n, ast.Call))
    return {f.id if isinstance(f, ast.Name) else getattr(f, "attr", "") for f in found}


def printing_cells(cells):
    """The cells that print or draw, directly or through a function that the notebook defines."""
    trees = [ast.parse(cell.source) for cell in cells]
    functions = [n for tree in trees for n in tree.body if isinstance(n, ast.FunctionDef)]
    printers = {"print", "display", "show"}
    printers |= {f.name for f in functions if calls(f.body) & printers}
    for cell, tree in zip(cells, trees, strict=True):
        if calls(s for s in tree.body if not isinstance(s, ast.FunctionDef)) & printers:
            yield cell


def texts(notebook):
    """What the cells print or show as text."""
    outputs = (output for cell in code_cells(notebook) for output in cell.outputs)
    return [output.get("text") or output.data["text/plain"] for output in outputs]


def test_there_are_proofs_and_lessons():
    assert len(PROOFS) > 5
    assert [path.stem for path in LESSONS] == ["1_holds", "2_open", "3_reversed", "4_benchmark"]


@pytest.mark.parametrize("path", PROOFS, ids=lambda path: path.stem)
def test_a_proof_folds_its_helpers(path):
    cells = code_cells(nbformat.read(path, as_version=4))
    shown = [cell for cell in cells if "hide-input" not in cell.metadata.get("tags", ())]
    assert [cell.source for cell in shown if len(cell.source.splitlines()) > SHOWN_LINES] == []
    assert len(shown) < len(cells)


@each_lesson
def test_a_lesson_ends_in_a_result_that_its_outputs_show(path):
    notebook = nbformat.read(path, as_version=4)
    end = notebook.cells[-1].source
    assert end.startswith("## Result: ")
    number = r"\d+\.\d+"
    computed = {float(one) for text in texts(notebook) for one in re.findall(number, text)}
    written = re.findall(number, " ".join(re.findall(r"^> (.*)$", end, re.MULTILINE)))
    given = {"0.95", *re.findall(number, " ".join(cell.source for cell in code_cells(notebook)))}
    near = {f"{one:.{digits}f}" for one in computed for digits in (2, 3, 4)}
    assert set(written) - given
    assert set(written) - given - near == set()


@each_lesson
def test_tables_of_a_lesson_show_whole_values_without_types(path):
    outputs = [output for cell in code_cells(nbformat.read(path, as_version=4)) for output in cell.outputs]
    tables = [o.data["text/html"] for o in outputs if "text/html" in o.get("data", {})]
    assert len(tables) > 2
    assert [table for table in tables if re.search(r"<small>|…|hellip|f64", table)] == []
    assert any("image/png" in output.get("data", {}) for output in outputs)


def test_lessons_and_tutorials_link_to_each_other():
    tutorials = {path.stem: path for path in (ROOT / "docs" / "get_started").glob("[0-9]*.md")}
    for path in LESSONS:
        cells = nbformat.read(path, as_version=4).cells
        text = "".join(cell.source for cell in cells if cell.cell_type == "markdown")
        of = re.findall(r"\(\.\./\.\./docs/get_started/(\w+)\.md\)", text)
        back = [name for name in of if f"notebooks/lessons/{path.name}" in tutorials[name].read_text("utf-8")]
        assert back, path.stem


# Only what the notebook runner itself deprecates; the notebook's own code runs in the kernel.
@pytest.mark.filterwarnings(
    r"ignore::DeprecationWarning:(nbclient|nbformat|jupyter_client|jupyter_core|zmq)(\..*)?"
)
@each_notebook
def test_it_runs(path, tmp_path, monkeypatch):
    # The kernel is a process of its own: it must find the package even where it is not installed.
    folders = (str(ROOT), os.environ.get("PYTHONPATH", ""))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, folders)))
    if path.stem in COMPILED_QUICKLY:
        monkeypatch.setenv("JAX_DISABLE_MOST_OPTIMIZATIONS", "1")
    # Beside the documents, as the notebook itself: some are read.
    folder = tmp_path / "notebooks"
    folder.mkdir()
    (tmp_path / "docs").symlink_to(ROOT / "docs")
    copy = folder / path.name
    copy.write_bytes(path.read_bytes())
    notebook = nbformat.read(copy, as_version=4)
    place = {"metadata": {"path": str(folder)}}
    NotebookClient(notebook, kernel_name="python3", timeout=600, resources=place).execute()
    outputs = [output for cell in code_cells(notebook) for output in cell.outputs]
    assert not [output for output in outputs if output.output_type == "error"]
    if path in LESSONS and path.stem not in TRAINED:
        assert texts(notebook) == texts(nbformat.read(path, as_version=4))


@each_notebook
def test_the_committed_copy_shows_its_outputs(path):
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    cells = code_cells(notebook)
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    assert [cell.source for cell in printing_cells(cells) if not cell.outputs] == []
    outputs = [output for cell in cells for output in cell.outputs]
    assert not [o for o in outputs if o.output_type == "error" or o.get("name") == "stderr"]
    assert path.stat().st_size < 600_000


def test_closed_forms_covers_every_formula():
    cells = code_cells(nbformat.read(ROOT / "notebooks" / "closed_forms.ipynb", as_version=4))
    nodes = [node for cell in cells for node in ast.walk(ast.parse(cell.source))]
    used = {node.attr for node in nodes if isinstance(node, ast.Attribute)}
    formulas = {
        name
        for module in (openworld, theory)
        for name in module.__all__
        if inspect.isfunction(getattr(module, name))
    }
    models = {"Independent", "NodeBased", "PopularityBased", "Score"}
    assert formulas | models <= used, sorted((formulas | models) - used)


def test_rank_metrics_covers_every_function_of_rank_tables():
    cells = code_cells(nbformat.read(ROOT / "notebooks" / "rank_metrics.ipynb", as_version=4))
    nodes = [node for cell in cells for node in ast.walk(ast.parse(cell.source))]
    used = {
        node.attr
        for node in nodes
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) in ("metrics", "ir")
    }
    expected = {name for name in metrics.__all__ if inspect.isfunction(getattr(metrics, name))}
    expected -= {"register_metric", "unregister_metric"}
    assert expected <= used, sorted(expected - used)
    named = {node.id for node in nodes if isinstance(node, ast.Name)}
    assert {"reweighted", "tie_expectation"} <= named | {
        n.attr for n in nodes if isinstance(n, ast.Attribute)
    }
    # Macro metrics are checked against measures of judged lists.
    assert {"judge", "average_precision", "ndcg"} <= used


def test_family_tree_covers_what_is_computed():
    cells = code_cells(nbformat.read(ROOT / "notebooks" / "family_tree.ipynb", as_version=4))
    nodes = [node for cell in cells for node in ast.walk(ast.parse(cell.source))]
    used = {ast.unparse(node) for node in nodes if isinstance(node, ast.Attribute)}
    of_people = ("sample_people", "generations", "ontology", "closure", "closed_graph", "fact_counts")
    assert {f"family_tree.{name}" for name in (*of_people, "published_people")} <= used
    assert {f"sampling.{name}" for name in ("sample", "alpha", "RelationBased")} <= used


def test_train_and_evaluate_covers_what_trains_and_ranks():
    cells = code_cells(nbformat.read(ROOT / "notebooks" / "train_and_evaluate.ipynb", as_version=4))
    nodes = [node for cell in cells for node in ast.walk(ast.parse(cell.source))]
    used = {ast.unparse(node) for node in nodes if isinstance(node, ast.Attribute)}
    of_models = ("MODELS", "model", "score", "score_all", "import_embeddings", "write_embeddings")
    assert {f"models.{name}" for name in of_models} <= used
    assert {f"train.{name}" for name in ("training", "config_text", "train", "train_many")} <= used
    assert {"evaluation.ranks", "family_tree.closed_graph", "sampling.sample"} <= used


def test_sparse_vs_full_covers_what_is_resampled_and_predicted():
    cells = code_cells(nbformat.read(ROOT / "notebooks" / "sparse_vs_full.ipynb", as_version=4))
    called = {name for cell in cells for name in calls(ast.parse(cell.source).body)}
    assert {"read_world", "record", "query_values", "flattening"} <= called
    assert {"thin", "resample", "quantiles", "inversions"} <= called
    assert {"measured_strength", "predicted", "predicted_inversions"} <= called
