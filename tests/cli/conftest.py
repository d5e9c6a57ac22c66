"""What the tests of commands share."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from owkg.cli.main import main

Call = Callable[..., tuple[int, str, str]]


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str]) -> Call:
    """Runs a command line; gives (exit code, standard output, standard error)."""

    def run_it(*arguments: object) -> tuple[int, str, str]:
        code = main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run_it


@pytest.fixture
def done(call: Call) -> Callable[..., str]:
    """Runs a command line that succeeds, with silent standard error; gives what it prints.

    With `notes`, standard error holds notes and names of files that were written.
    """

    def run_it(*arguments: object, notes: bool = False) -> str:
        code, out, err = call(*arguments)
        said = [line for line in err.splitlines() if not line.startswith(("owkg: note: ", "wrote "))]
        assert (code, said, bool(err)) == (0, [], notes)
        return out

    return run_it


@pytest.fixture
def answer(call: Call) -> Callable[..., Any]:
    """Runs a command line with --format json that succeeds; gives what the JSON holds."""

    def run_it(*arguments: object) -> Any:
        code, out, err = call(*arguments, "--format", "json")
        assert code == 0, err
        # Strictly JSON: no NaN, no Infinity.
        return json.loads(out, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))

    return run_it


@pytest.fixture
def refused(call: Call) -> Callable[..., str]:
    """Runs a command line that is refused: exit code 2, one clear line and no output; gives the line.

    With `notes`, there are notes before it.
    """

    def run_it(*arguments: object, notes: bool = False) -> str:
        code, out, err = call(*arguments)
        assert (code, out) == (2, "")
        *before, line = err.splitlines()
        assert line.startswith("owkg: error: ")
        assert bool(before) == notes
        assert all(note.startswith("owkg: note: ") for note in before)
        assert err.endswith("\n")
        assert "Traceback" not in err
        assert "Errno" not in err
        return err

    return run_it
