"""Who may import whom (docs/project/architecture.md), and what may stand nowhere in the library."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from importlinter import cli

ROOT = Path(__file__).parents[1]


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


def _files(folder: str) -> list[Path]:
    return sorted((ROOT / folder).rglob("*.py"))


LIBRARY = _files("owkg") + _files("family_tree")


def _name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def test_no_import_runs_upward_or_sideways():
    """The contracts of `.importlinter`, which also `make lint` holds the source to."""
    assert cli.lint_imports(config_filename=str(ROOT / ".importlinter"), no_cache=True) == 0


def test_a_broken_contract_fails(tmp_path, monkeypatch):
    (tmp_path / "house").mkdir()
    for name, source in (("__init__", ""), ("above", ""), ("below", "from house import above")):
        (tmp_path / "house" / f"{name}.py").write_text(source)
    contract = "name = floors\ntype = layers\nlayers =\n    house.above\n    house.below\n"
    (tmp_path / "contract").write_text(
        f"[importlinter]\nroot_package = house\n\n[importlinter:contract:floors]\n{contract}"
    )
    monkeypatch.syspath_prepend(tmp_path)
    assert cli.lint_imports(config_filename=str(tmp_path / "contract"), no_cache=True) == 1


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
    "source", ["x = 1", '"""Doc."""\nx = 1', '"""Doc."""\ndef f(): pass', '"""Doc."""\nprint()', "import os"]
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
    found = forbidden(path.read_text(encoding="utf-8"))
    # Processes that train together are connected for the whole of each process.
    connected = path.name == "hosts.py" and len(found) == 1 and found[0].endswith(": jax.config.update")
    assert found == [] or connected


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


# --- what may talk to other machines

NETWORK = (
    "socket", "ssl", "http", "urllib.request", "urllib3", "ftplib", "smtplib", "requests", "httpx", "aiohttp",
    "webbrowser", "distributed",
)  # fmt: skip
# Training on several processes, and nothing else.
TALKS = ("owkg/train/hosts.py", "owkg/train/workers.py")


def networked(source: str) -> list[str]:
    """Imports in `source` of what can open a connection."""
    return [
        name for _, name in imported(source, "") if any(f"{name}.".startswith(f"{one}.") for one in NETWORK)
    ]


@pytest.mark.parametrize("path", LIBRARY, ids=_name)
def test_nothing_but_training_talks_to_other_machines(path):
    assert not networked(path.read_text(encoding="utf-8")) or _name(path) in TALKS


@pytest.mark.parametrize(
    "source", ["import socket", "from urllib.request import urlopen", "import http.client"]
)
def test_connections_are_seen(source):
    assert networked(source)
