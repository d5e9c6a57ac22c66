"""Commands out of functions, and what holds for every command that there is."""

import re
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import pytest
import typer
from typer.main import get_command

from owkg.cli.commands import LAST, Given, group
from owkg.cli.errors import called
from owkg.cli.main import PANELS, app, main

HEARD = {}


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Some options.

    Attributes:
        most (N): Number of each, which may
            be many. Default: all there are.
        exactly: Count exactly.

    Rarely needed:
        slowly: Take time.
    """

    most: Annotated[int | None, typer.Option(min=1)] = None
    exactly: bool = True
    slowly: Annotated[bool, typer.Option("--at-leisure")] = False


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
        "--filter TEXT What leaves, such as (this): that. [required]",
        "--most N [x>=1] Number of each, which may be many. Default: all there are.",
        "--exactly --no-exactly Count exactly. [default: exactly]",
        "--help Show this message and exit.",
        "Of groups",
        "--by <a|b> How. [default: a]",
        "Rarely needed",
        "--at-leisure Take time.",
        "Examples: some count x.tsv --filter y some count x.tsv --filter y --no-exactly",
    ):
        assert text in out
    assert out.index("Of groups") < out.index("Rarely needed") < out.index("Examples")
    assert "<bool>" not in out


def test_commands_stand_in_panels_in_their_order(capsys):
    deep = group("deep", "Commands below.", other)
    grouped = group("some", "Some commands.", panels={"Last": (deep, count), "More": (other,)})
    assert called("some", grouped, ["--help"]) == 0
    out = capsys.readouterr().out
    places = [out.index(text) for text in (" Last ", " deep ", " count ", " More ", " other ")]
    assert places == sorted(places)
    assert "<bool>" not in out


def test_a_former_name_is_hidden_and_says_so(capsys):
    renamed = group("some", "Some commands.", count, other, former={"others": other})
    assert called("some", renamed, ["others", "--fast"]) == 0
    assert HEARD["fast"]
    note = "owkg: note: `some others` is now `some other`; the old name ends with 0.2.\n"
    assert capsys.readouterr().err == note
    assert called("some", renamed, ["--help"]) == 0
    assert "others" not in capsys.readouterr().out


def test_what_a_docstring_leaves_out_is_found():
    def silent(*, much: int) -> None:
        """Says nothing of much."""

    with pytest.raises(TypeError, match="must describe the parameter 'much'"):
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


COMMANDS = {words: one for words, one in _commands(get_command(app)) if not one.hidden}
# First words of a text that completes the name of its option and cannot be read without it.
FRAGMENT = re.compile(r"(Of|That|Whose|Which|How many|With|Also|Instead|As|Absent|By|For|To|In|At)\b")


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_help_shows_every_option_and_examples_that_parse(call, monkeypatch, words):
    monkeypatch.setenv("COLUMNS", "200")
    command = COMMANDS[words]
    code, out, err = call(*words, "--help")
    assert (code, err) == (0, "")
    assert all(flag in out for one in command.params for flag in one.opts if flag.startswith("-"))
    assert all(one.help and (one.metavar or "") in out for one in command.params)
    for ugly in ("<bool>", "<list", "[[", "]]", "[default: ("):
        assert ugly not in out
    assert "Examples:" in out
    examples = [line for line in command.epilog.splitlines() if line.startswith(f"owkg {' '.join(words)}")]
    assert examples
    for line in examples:
        command.make_context(words[-1], shlex.split(line)[1 + len(words) :])


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_every_text_of_a_help_stands_alone(words):
    """A phrase that is understood without the name of the option; what is said of a command is a sentence."""
    command = COMMANDS[words]
    for text in (command.help.split("\n\n")[0], *(one.help for one in command.params)):
        assert text[0].isupper(), text
        assert text.endswith("."), text
        assert not FRAGMENT.match(text), text
        assert len(text.split()) > 3, text


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_panels_of_a_command_end_with_what_few_need(words):
    panels = list(
        dict.fromkeys(one.rich_help_panel for one in COMMANDS[words].params if one.opts[0][0] == "-")
    )
    assert None not in panels[1:]
    rare = [panel for panel in panels if panel in LAST]
    assert rare == [panel for panel in LAST if panel in panels] == panels[len(panels) - len(rare) :]


# Options that several commands have.
SAME = (
    "--sides",
    "--candidates",
    "--figure",
    "--figures",
    "--layout",
    "--missing",
    "--format",
    "--kg",
    "--filter",
)


@pytest.mark.parametrize("flag", SAME)
def test_an_option_has_one_kind_of_value_over_all_commands(flag):
    kinds = {
        (one.metavar or type(one.type_descriptor).__name__, one.is_flag)
        for command in COMMANDS.values()
        for one in command.params
        if flag in one.opts
    }
    assert len(kinds) == 1


def test_the_first_level_has_seven_panels(call, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    out = call("--help")[1]
    titles = re.findall(r"^╭─ (.+?) ─", out, re.MULTILINE)
    assert titles == ["Options", *PANELS]
    assert len(PANELS) == 7
    assert "<bool>" not in out
    assert "evaluate" not in out


def test_the_former_name_of_rank(call):
    code, _, err = call("evaluate", "nowhere", "--out", "ranks.csv")
    assert code == 2
    assert err.startswith("owkg: note: `owkg evaluate` is now `owkg rank`; the old name ends with 0.2.\n")
    assert "owkg: error: nowhere" in err


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_complete_commands_and_options(shell, call, monkeypatch, capsys):
    monkeypatch.setenv("_OWKG_COMPLETE", f"complete_{shell}")
    monkeypatch.setenv("COMP_WORDS", "owkg metrics --int")
    monkeypatch.setenv("COMP_CWORD", "2")
    monkeypatch.setenv("_TYPER_COMPLETE_ARGS", "owkg metrics --int")
    monkeypatch.setenv("_TYPER_COMPLETE_FISH_ACTION", "get-args")
    with pytest.raises(SystemExit) as ended:
        main([])
    assert not ended.value.code
    assert "--interval" in capsys.readouterr().out
