"""Which modules a command may import: what needs no JAX does not wait for it."""

import json
import subprocess
import sys

import pytest

import owkg

# What takes long to import: an array library that compiles, figures, distributions.
HEAVY = ("jax", "matplotlib", "optax", "scipy.stats")
INPUT = "tests/golden/input"


def loaded(code, root, of=HEAVY):
    """Of some modules, those that a process has imported after `code`."""
    listed = f"{code}\nimport json, sys\nprint(json.dumps([m for m in {of!r} if m in sys.modules]))"
    done = subprocess.run(
        [sys.executable, "-c", listed], cwd=root, capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize(
    ("line", "allowed"),
    [
        ("--help", []),
        ("metrics --help", []),
        ("train --help", []),
        (f"kg info {INPUT}/graph", []),
        (f"metrics {INPUT}/oracle.csv --metric mrr,hits@10,amri,gmr,zmrr,macro-map@20", []),
        (f"metrics {INPUT}/oracle.csv", []),
        ("metrics --list", []),
        (f"ranks convert {INPUT}/oracle.csv --out {{out}}/ranks.parquet", []),
        ("family-tree generate {out}/families --num-trees 2 --max-tree-size 8", []),
        ("family-tree relations", []),
        (f"pool {INPUT}/one.run {INPUT}/two.run --depth 3 --kg {INPUT}/graph --out {{out}}/pool", []),
        ("theory --strength 0.7 --sparsity 0.35 --num-answers 9 --num-entities 99", []),
    ],
)
def test_what_a_command_imports(line, allowed, tmp_path, request):
    arguments = line.format(out=tmp_path).split()
    code = f"from owkg.cli.main import main\nassert main({arguments!r}) == 0"
    assert set(loaded(code, request.config.rootpath)) <= set(allowed)


def test_help_needs_no_arrays(request):
    code = "from owkg.cli.main import main\nassert main(['--help']) == 0"
    assert loaded(code, request.config.rootpath, ("numpy", "polars", "scipy")) == []


def test_the_package_imports_its_parts_when_they_are_asked_for(request):
    assert loaded("import owkg; dir(owkg)", request.config.rootpath) == []
    rooms = "import owkg; owkg.kg; owkg.ranks; owkg.metrics; owkg.judge; owkg.openworld; owkg.sampling"
    assert "jax" not in loaded(rooms, request.config.rootpath)
    assert loaded("import jax", request.config.rootpath) == ["jax"]


def test_every_name_is_there():
    assert dir(owkg) == owkg.__all__
    assert all(getattr(owkg, name) is not None for name in owkg.__all__)
