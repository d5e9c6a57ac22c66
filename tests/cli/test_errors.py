"""The line that an error becomes: bounded, and with values as they are."""

import shutil
from pathlib import Path

import pytest
import typer.main

from owkg.cli.errors import guarded, option_named, options_of
from owkg.cli.main import app
from owkg.errors import renamed

INPUT = Path(__file__).parents[1] / "golden" / "input"


def _line(capsys, message):
    def fail():
        raise ValueError(message)

    assert guarded("owkg", fail) == 2
    return capsys.readouterr().err


@pytest.mark.parametrize(
    ("message", "line"),
    [
        ("`num_answers` must be 1.", "--num-answers must be 1."),
        ("`a` must be below 1 - `b`, got 2; with `c` 3", "--a must be below 1 - --b, got 2; with --c 3"),
        ("file.txt, line 3: no entity '`head`'.", "file.txt, line 3: no entity '`head`'."),
        ("no entity 'it\\'s `head`', `by`", "no entity 'it\\'s `head`', --by"),
        ('no entity "it\'s `head`", (`by`)', 'no entity "it\'s `head`", (--by)'),
        ("the query's `side` and its answers' `side`", "the query's --side and its answers' --side"),
        ("a/`head`/a.txt: `side` must", "a/`head`/a.txt: --side must"),
        ("two\nlines  and\ttabs", "two lines and tabs"),
    ],
)
def test_arguments_are_options_and_values_are_values(capsys, message, line):
    assert _line(capsys, message) == f"owkg: error: {line}\n"


def _commands(command, words=()):
    if not getattr(command, "commands", {}):
        yield words, command
    for name, one in getattr(command, "commands", {}).items():
        yield from _commands(one, (*words, name))


COMMANDS = dict(_commands(typer.main.get_command(app)))
# Arguments of the library that commands call otherwise, and one that none has.
ARGUMENTS = ("metrics", "systems", "graph", "scores", "num_candidates", "filter_splits", "on_progress")


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_no_command_names_an_option_that_it_does_not_have(words):
    """Parameters by their own flags or places; other arguments by an option of this command, or as words."""
    options = options_of(app, [*words, "some", "--thing"])
    named = COMMANDS[words].params
    assert len(options) == len(named)
    for one in named:
        shown = option_named(one.name.rstrip("_"), options)
        assert shown in one.opts if shown.startswith("--") else shown.isupper()
    for argument in ARGUMENTS:
        shown = option_named(argument, options)
        assert shown in options.values() or shown == argument.replace("_", " ")


def test_an_argument_without_an_option_is_said_in_words(refused, tmp_path):
    (tmp_path / "run").write_text("a|r|? Q0 b 1 0.5 m\n")
    err = refused("ir", tmp_path / "run", "--qrels", tmp_path / "run")
    assert "--" not in err.replace("--qrels", "")


@pytest.mark.parametrize("label", ["x" * 2_000_000, "a b " * 500_000, "'`" * 1_000_000, "y\n" * 5000])
def test_a_giant_value_is_shortened(capsys, label):
    line = _line(capsys, f"facts.txt, line 7: no entity {label!r}; the end of it.")
    assert len(line) < 1100
    assert line.startswith("owkg: error: facts.txt, line 7: no entity ")
    assert line.endswith("; the end of it.\n")
    assert " letters ...] " in line


def test_other_words_for_arguments():
    assert renamed("`a` is '`a`'", str.upper) == "A is '`a`'"


@pytest.mark.parametrize(
    "line",
    [
        "ir one.run --qrels full.qrels --per-query full.qrels",
        "ir one.run --qrels full.qrels --per-query one.run",
        "ranks filtered visits_scores.npz visits_asked.csv --known visits.csv --key time --out visits.csv",
        "ranks convert one.csv --out one.csv",
        "ranks generated answers.csv --kg graph --out answers.csv",
        "classify one.csv --out one.csv",
        "audit one.csv --report one.md",
    ],
)
def test_what_is_read_is_not_written_over(refused, tmp_path, monkeypatch, line):
    for path in INPUT.glob("*.*"):
        shutil.copy(path, tmp_path)
    monkeypatch.chdir(tmp_path)
    shutil.copy("oracle.csv", "one.csv")
    Path("answers.csv").symlink_to("answers.jsonl")
    Path("one.md").symlink_to("one.csv")
    before = {path: path.read_bytes() for path in Path().iterdir()}
    err = refused(*line.split())
    assert "cannot be written: it is read as well" in err
    assert {path: path.read_bytes() for path in Path().iterdir()} == before


def test_a_closed_stream_is_no_error(monkeypatch):
    monkeypatch.setattr("sys.stdout", None)
    assert guarded("owkg", str) == 0
