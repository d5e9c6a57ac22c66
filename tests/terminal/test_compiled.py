"""Compiled programs on disk: where they go, what turns them off, and what a damaged one does."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from owkg.terminal import compiled

LEAST = "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"
VARIABLES = ("JAX_COMPILATION_CACHE_DIR", "JAX_ENABLE_COMPILATION_CACHE", "XDG_CACHE_HOME", "HOME", LEAST)


@pytest.fixture
def kept(monkeypatch):
    """Folder that is set in an environment with these variables only; None: none is set."""

    def of(**variables):
        for name in VARIABLES:
            monkeypatch.delenv(name, raising=False)
        for name, value in variables.items():
            monkeypatch.setenv(name, str(value))
        compiled.keep_compiled()
        return os.environ.get("JAX_COMPILATION_CACHE_DIR")

    return of


@pytest.mark.filterwarnings("ignore")
def test_the_cache_of_the_user(kept, tmp_path):
    folder = Path(kept(HOME=tmp_path))
    assert folder.is_dir()
    assert folder.parent == tmp_path / ".cache" / "owkg" / "compiled"
    assert os.environ[LEAST] == "0.2"
    other = Path(kept(HOME=tmp_path, XDG_CACHE_HOME=tmp_path / "other"))
    assert other == tmp_path / "other" / "owkg" / "compiled" / folder.name


@pytest.mark.parametrize(
    "variables",
    [
        {"HOME": "/proc"},
        {"HOME": "/proc/none"},
        {"XDG_CACHE_HOME": "/dev/null"},
        {"HOME": ""},
        {"HOME": "/"},
        {"HOME": "/", "XDG_CACHE_HOME": "relative"},
        {"JAX_ENABLE_COMPILATION_CACHE": "false"},
    ],
    ids=["no writing", "no home", "a file", "empty home", "root", "relative", "turned off"],
)
def test_no_folder(kept, variables, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert kept(**variables) is None
    assert not list(tmp_path.iterdir())


def test_what_the_user_set_stays(kept, tmp_path):
    assert kept(HOME=tmp_path, JAX_COMPILATION_CACHE_DIR=tmp_path / "mine") == str(tmp_path / "mine")
    assert not list(tmp_path.iterdir())


def test_another_processor_has_another_folder(monkeypatch):
    own = compiled._processor()
    assert own == compiled._processor()
    monkeypatch.setattr(compiled, "_FIRST_PROCESSOR", 200)  # fewer flags are seen
    assert compiled._processor() != own


def test_a_damaged_program_is_compiled_again_in_silence(tmp_path):
    environment = {name: value for name, value in os.environ.items() if name not in VARIABLES}
    environment |= {"HOME": str(tmp_path), LEAST: "0"}
    code = (
        "from owkg.terminal.compiled import keep_compiled; keep_compiled(); import jax; "
        "print(jax.jit(lambda x: x + 1)(1))"
    )

    def called():
        return subprocess.run(
            [sys.executable, "-c", code], env=environment, check=True, capture_output=True, text=True
        )

    first = called()
    programs = [path for path in (tmp_path / ".cache").rglob("*-cache") if path.is_file()]
    assert programs
    for path in programs:
        path.write_bytes(b"damaged")
    second = called()
    assert (first.stdout, second.stdout, second.stderr) == ("2\n", "2\n", "")
