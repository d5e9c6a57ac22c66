"""Who may import whom (docs/architecture.md), read from the source without running it."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import owkg

ROOT = Path(__file__).parents[1]

# What each part of owkg may import of the others. A part not named here has no floor, and fails.
FLOORS = {
    "checks": set(),
    "keys": set(),
    "parquet": set(),
    "files": {"parquet"},
    "provenance": set(),
    "openworld": {"checks"},
    "kg": {"checks", "files"},
    "ranks": {"keys", "kg", "checks", "files"},
    "metrics": {"keys", "ranks", "kg", "checks"},
    "sampling": {"kg", "openworld", "checks", "files", "provenance"},
    "models": {"keys", "kg", "checks", "files"},
    "evaluate": {"models", "ranks", "kg", "checks", "files"},
    "train": {"keys", "evaluate", "models", "metrics", "ranks", "kg", "checks", "files", "provenance"},
    "theory": {"metrics", "openworld", "checks"},
    "simulate": {"keys", "metrics", "openworld", "checks"},
    "judge": {"keys", "simulate", "metrics", "ranks", "kg", "checks", "files"},
    "study": {
        "keys",
        "judge",
        "simulate",
        "theory",
        "train",
        "evaluate",
        "models",
        "metrics",
        "kg",
        "openworld",
        "checks",
        "files",
        "provenance",
    },
    "report": {
        *(
            "keys",
            "study",
            "judge",
            "sampling",
            "theory",
            "simulate",
            "metrics",
            "ranks",
            "kg",
            "openworld",
            "checks",
            "files",
        ),
    },
}
# Entry points and scripts: they stand on top, and nobody may import them.
TOP = {"cli", "__main__"}
# The package of the closed world stands on the graph, and only entry points and scripts import it.
FAMILY_TREE = {"kg", "checks", "files", "provenance"}
SCRIPTS = ("simulations", "benchmarks", "notebooks", "tests")


def _module(path: Path, root: Path) -> str:
    parts = path.relative_to(root).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported(source: str, package: str) -> Iterator[tuple[int, str]]:
    """(line, dotted name) of every import in `source`, wherever it stands, relative ones resolved.

    Args:
        source: of one module.
        package: the package that the module lives in.
    """
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom):
            base = package.split(".")[: len(package.split(".")) - node.level + 1]
            start = ".".join((base if node.level else []) + ([node.module] if node.module else []))
            for alias in node.names:
                yield node.lineno, f"{start}.{alias.name}"
        elif isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            constant = node.args and isinstance(node.args[0], ast.Constant) and node.args[0].value
            if called.endswith(("import_module", "__import__")) and isinstance(constant, str):
                yield node.lineno, constant


def violations(source: str, module: str, *, is_package: bool = False) -> list[str]:
    """The imports of `source` that run upward or sideways, one line each."""
    root, _, inner = module.partition(".")
    part = inner.split(".")[0]
    if root == "owkg" and part in TOP:
        return []
    if root == "owkg" and part not in FLOORS:
        return [f"{module}: owkg.{part} has no floor; add it to FLOORS"]
    allowed = FAMILY_TREE if root == "family_tree" else FLOORS[part] | {part}
    package = module if is_package else module.rpartition(".")[0]
    found = []
    for line, name in imported(source, package):
        top, *rest = name.split(".")
        below = top == "owkg" and rest[:1] and rest[0] in allowed
        if (top == "owkg" and not below) or (top == "family_tree" and root != top):
            found.append(f"{module}:{line} imports {name}")
        elif top in SCRIPTS:
            found.append(f"{module}:{line} imports {name}, a script")
    return found


def _files(folder: str) -> list[Path]:
    return sorted((ROOT / folder).rglob("*.py"))


LIBRARY = _files("owkg") + _files("family_tree")


def _name(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", [p for p in LIBRARY if p != ROOT / "owkg" / "__init__.py"], ids=_name)
def test_no_import_runs_upward_or_sideways(path):
    source = path.read_text(encoding="utf-8")
    is_package = path.name == "__init__.py"
    assert violations(source, _module(path, ROOT), is_package=is_package) == []


@pytest.mark.parametrize("path", [*_files("simulations"), *_files("benchmarks")], ids=_name)
def test_scripts_import_no_tests(path):
    names = [name for _, name in imported(path.read_text(encoding="utf-8"), "")]
    assert not [name for name in names if name.split(".")[0] == "tests"]


def test_the_walk_sees_the_library():
    seen = {_module(p, ROOT) for p in LIBRARY}
    assert {"owkg", "owkg.checks", "owkg.theory.moments", "owkg.simulate.estimate"} <= seen
    floors = {p.relative_to(ROOT / "owkg").parts[0].removesuffix(".py") for p in _files("owkg")}
    assert floors - {"__init__"} <= FLOORS.keys() | TOP


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("owkg.theory.moments", "from owkg.simulate import estimate"),
        ("owkg.theory.moments", "from owkg import simulate"),
        ("owkg.theory.moments", "import owkg"),
        ("owkg.theory.moments", "import owkg.simulate.estimate as e"),
        ("owkg.theory.moments", "from ..simulate import estimate"),
        ("owkg.theory.moments", "from .. import simulate"),
        ("owkg.simulate.estimate", "def f():\n    from owkg.theory import moments"),
        ("owkg.simulate.estimate", "import importlib\nimportlib.import_module('owkg.theory')"),
        ("owkg.metrics.catalogue", "from owkg.openworld import grid"),
        ("owkg.kg.files", "from owkg.ranks import read_table"),
        ("owkg.ranks.table", "from owkg.metrics import MRR"),
        ("owkg.openworld.setting", "from owkg.metrics import MRR"),
        ("owkg.checks", "from owkg.openworld import grid"),
        ("owkg.report.figure", "from owkg.cli.main import main"),
        ("owkg.theory.moments", "from owkg.report import figure"),
        ("owkg.theory.moments", "from simulations import figure1"),
        ("owkg.theory.moments", "import tests.conftest"),
        ("owkg.nowhere.module", ""),
        ("owkg.kg.read", "import family_tree"),
        ("owkg.sampling.split", "from family_tree import closure"),
        ("family_tree.closure", "from owkg.metrics import MRR"),
        ("family_tree.closure", "from owkg.sampling import sampled"),
    ],
)
def test_the_walker_catches(module, source):
    assert len(violations(source, module)) == 1


@pytest.mark.parametrize(
    ("module", "source"),
    [
        (
            "owkg.theory.moments",
            "from owkg.openworld import grid\nfrom owkg import checks",
        ),
        ("owkg.theory.moments", "from .grids import over_grid\nfrom ..metrics import MRR"),
        (
            "owkg.simulate.estimate",
            "import numpy as np\nfrom owkg.simulate import sums",
        ),
        ("owkg.cli.theory", "from owkg import theory, simulate, report"),
        ("owkg.report.figure", "from owkg import theory, simulate"),
        ("owkg.cli.family_tree", "import family_tree"),
        ("family_tree.closure", "from owkg.kg import KnowledgeGraph\nfrom family_tree.people import People"),
    ],
)
def test_the_walker_lets_pass(module, source):
    assert violations(source, module) == []


def test_relative_imports_of_a_package_are_resolved_from_the_package():
    assert violations("from ..simulate import x", "owkg.theory", is_package=True)
    assert not violations("from .moments import x", "owkg.theory", is_package=True)


# --- what a package's __init__.py may hold


def extras(source: str) -> list[str]:
    """What stands in an `__init__.py` beside its docstring, imports, and `__all__`."""
    docstring, *body = ast.parse(source).body or [ast.Pass()]
    is_docstring = isinstance(docstring, ast.Expr) and isinstance(docstring.value, ast.Constant)
    found = [] if is_docstring and isinstance(docstring.value.value, str) else ["no docstring"]
    for node in body:
        is_all = isinstance(node, ast.Assign) and ast.unparse(node.targets) == "__all__"
        if not (isinstance(node, ast.Import | ast.ImportFrom) or is_all):
            found.append(ast.unparse(node))
    return found


# All but the first, which imports its parts when they are asked for.
PACKAGES = [p for p in LIBRARY if p.name == "__init__.py" and p.parent != ROOT / "owkg"]


def test_the_package_imports_its_parts_when_they_are_asked_for():
    code = (
        "import sys, owkg; before = set(sys.modules); assert not {'jax', 'polars', 'numpy'} & before;"
        "print(all(getattr(owkg, name) is not None for name in owkg.__all__), dir(owkg) == owkg.__all__)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("True True\n", "")
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        owkg.nothing  # noqa: B018


@pytest.mark.parametrize("path", PACKAGES, ids=_name)
def test_a_package_holds_a_docstring_imports_and_all(path):
    assert extras(path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("path", PACKAGES, ids=_name)
def test_all_is_sorted_and_is_what_is_imported(path):
    body = ast.parse(path.read_text(encoding="utf-8")).body
    bound = {a.asname or a.name for n in body if isinstance(n, ast.ImportFrom) for a in n.names}
    listed = [
        ast.literal_eval(node.value)
        for node in body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets) == "__all__"
    ]
    if not bound and not listed:
        return  # nothing but a docstring
    assert len(listed) == 1
    assert set(listed[0]) == bound
    assert len(set(listed[0])) == len(listed[0])


@pytest.mark.parametrize(
    "source",
    ["x = 1", '"""Doc."""\nx = 1', '"""Doc."""\ndef f(): pass', '"""Doc."""\nprint()', "import os"],
)
def test_extras_are_seen(source):
    assert extras(source)


# --- what may not stand anywhere in the library


def forbidden(source: str) -> list[str]:
    """Pickles, global seeds, and global jax configuration in `source`."""
    found = []
    tree = ast.parse(source)
    for line, name in imported(source, ""):
        if name.split(".")[0] in ("pickle", "cPickle", "dill", "cloudpickle", "shelve"):
            found.append(f"{line}: import {name}")
        if name in ("numpy.random.seed", "random.seed"):
            found.append(f"{line}: {name}")
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            if called.endswith(("random.seed", "config.update")):
                found.append(f"{node.lineno}: {called}")
            for keyword in node.keywords:
                is_false = isinstance(keyword.value, ast.Constant) and keyword.value.value is False
                if keyword.arg == "allow_pickle" and not is_false:
                    found.append(f"{node.lineno}: allow_pickle")
        targets = node.targets if isinstance(node, ast.Assign) else []
        found += [
            f"{target.lineno}: {name}"
            for target in targets
            if (name := ast.unparse(target)).startswith(("jax.config.", "config.jax_"))
        ]
    return found


@pytest.mark.parametrize("path", LIBRARY, ids=_name)
def test_no_pickle_no_global_seed_no_global_configuration(path):
    assert forbidden(path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    "source",
    [
        "import pickle",
        "from pickle import loads",
        "def f():\n    import pickle as p",
        "np.load(x, allow_pickle=True)",
        "np.load(x, allow_pickle=flag)",
        "np.random.seed(0)",
        "numpy.random.seed(0)",
        "from numpy.random import seed",
        "jax.config.update('jax_enable_x64', True)",
        "from jax import config\nconfig.update('jax_enable_x64', True)",
        "jax.config.jax_enable_x64 = True",
    ],
)
def test_forbidden_things_are_seen(source):
    assert forbidden(source)


def test_allowed_things_pass():
    assert not forbidden("np.load(x, allow_pickle=False)\nrng = np.random.default_rng(0)\nx.y = 1")
