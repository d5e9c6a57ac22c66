"""Commands out of functions, and what holds for every command that there is."""

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import pytest
import typer
from typer.main import get_command

from owkg.cli.commands import Given, group
from owkg.cli.errors import called
from owkg.cli.main import app

HEARD = {}


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Some options.

    Attributes:
        most (N): Of each, which may
            be many. [default: all there are]
        exactly: As it is.
    """

    most: Annotated[int | None, typer.Option(min=1)] = None
    exactly: bool = True


def count(
    files: list[Path], *, given: Given, filter_: str, limits: Limits, by: Literal["a", "b"] = "a"
) -> None:
    """Counts.

    What it does not say: nothing.

    Args:
        files (FILE...): To read.
        filter_: What leaves, such as (this): that.

    Of groups:
        by: How.

    Examples:
        some count x.tsv --filter
            y
        some count x.tsv --filter y --no-exactly
    """
    given.refuse(["by"] if limits.most else [], "has no effect with --most")
    HEARD.update(files=files, filter=filter_, limits=limits, by=by, given=given)


def other(*, fast: bool = False) -> None:
    """Does otherwise.

    Args:
        fast: Soon.
    """
    HEARD.update(fast=fast)


SOME = group("some", "Some commands.", count, other)


def test_a_function_is_a_command(capsys):
    assert called("some", SOME, ["count", "x", "y", "--filter", "z", "--most", "3"]) == 0
    limits = Limits(most=3)
    files = [Path("x"), Path("y")]
    expected = {"files": files, "filter": "z", "limits": limits, "by": "a"}
    assert expected | {"given": {"files", "filter_", "most"}} == HEARD
    assert called("some", SOME, ["count", "x", "--filter", "z", "--no-exactly"]) == 0
    assert HEARD["limits"] == Limits(exactly=False)
    assert called("some", SOME, ["other", "--fast"]) == 0
    assert HEARD["fast"]
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("count --filter z", "FILE..."),
        ("count x", "--filter"),
        ("count x --filter z --most 0", "--most"),
        ("count x --filter z --by c", "--by"),
        ("count x --filter z --by a --most 1", "--by has no effect with --most."),
        ("other --no-fast", "--no-fast"),
    ],
)
def test_what_a_command_refuses(capsys, line, message):
    assert called("some", SOME, line.split()) == 2
    assert message in capsys.readouterr().err


def test_the_docstring_is_the_help(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    assert called("some", SOME, ["count", "--help"]) == 0
    out = " ".join(capsys.readouterr().out.replace("│", " ").split())
    for text in (
        "Counts. What it does not say: nothing.",
        "FILE...",
        "To read. [required]",
        "--filter <str> What leaves, such as (this): that. [required]",
        "--most N [x>=1] Of each, which may be many. [default: (all there are)]",
        "--exactly --no-exactly <bool> As it is. [default: exactly]",
        "Of groups",
        "--by <a|b> How. [default: a]",
        "Examples: some count x.tsv --filter y some count x.tsv --filter y --no-exactly",
    ):
        assert text in out


def test_what_a_docstring_leaves_out_is_found():
    def silent(*, much: int) -> None:
        """Says nothing of much."""

    with pytest.raises(TypeError, match="of the parameter 'much'"):
        group("some", "", silent)

    def unclear(*, much: int) -> None:
        """Says it badly.

        Args:
            much is what there is.
        """

    with pytest.raises(TypeError, match=r"'much is what there is\.' is not of the form name: text"):
        group("some", "", unclear)


def _commands(command, words=()):
    for name, one in command.commands.items():
        yield from _commands(one, (*words, name)) if hasattr(one, "commands") else [((*words, name), one)]


COMMANDS = dict(_commands(get_command(app)))


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_help_shows_every_option_and_examples_that_parse(call, monkeypatch, words):
    monkeypatch.setenv("COLUMNS", "200")
    command = COMMANDS[words]
    code, out, err = call(*words, "--help")
    assert (code, err) == (0, "")
    assert all(flag in out for one in command.params for flag in one.opts if flag.startswith("-"))
    assert all(one.help and (one.metavar or "") in out for one in command.params)
    assert "Examples:" in out
    examples = [line for line in command.epilog.splitlines() if line.startswith(f"owkg {' '.join(words)}")]
    assert examples
    for line in examples:
        command.make_context(words[-1], shlex.split(line)[1 + len(words) :])
