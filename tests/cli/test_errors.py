"""The line that an error becomes: bounded, and with values as they are."""

import ast
import inspect
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import typer.main

from owkg.cli.errors import guarded, option_named, options_of
from owkg.cli.main import app
from owkg.errors import renamed

ROOT = Path(__file__).parents[2]
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
    assert "cannot be written: it is an input as well" in err
    assert {path: path.read_bytes() for path in Path().iterdir()} == before


def test_a_closed_stream_is_no_error(monkeypatch):
    monkeypatch.setattr("sys.stdout", None)
    assert guarded("owkg", str) == 0


@pytest.mark.parametrize("word", ["st\udce4dte.csv", "\udcff", "a/\udc80b"])
def test_an_argument_that_is_no_text_is_one_line(word):
    """Of a file whose name is not of the encoding of names: polars would not find it."""
    done = subprocess.run(
        [sys.executable, "-m", "owkg", "metrics", word], capture_output=True, check=False, cwd=ROOT
    )
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr.startswith(b"owkg: error: argument 2 must be text in utf-8, got '")
    assert done.stderr.count(b"\n") == 1


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("metrics oracle.csv --ci x", "Invalid value for '--ci': must be a number, got 'x'."),
        ("metrics oracle.csv --seed 1.5", "Invalid value for '--seed': must be a whole number, got '1.5'."),
        ("train graph --lr 0.1 --out r", "No such option: --lr; did you mean --learning-rate?"),
        ("train graph --bs 5 --out r", "No such option: --bs; did you mean --batch-size?"),
        ("train graph --optimizer sgd --out r", "No such option: --optimizer; did you mean --optimiser?"),
        ("train graph --embedding-dim 5 --out r", "No such option: --embedding-dim; did you mean --dim?"),
        ("train graph --xyz 5 --out r", "No such option: --xyz"),
        ("kg sample graph s --share 0", "--share must be in (0, 1], got 0.0."),
        (
            "audit oracle.csv random.csv --sparsity 30",
            "--sparsity must be a share, so that 20 % is 0.2, got 30.",
        ),
        ("compare oracle.csv random.csv --out one.run", "--out must be a folder, got the file one.run."),
        ("metrics oracle.csv --figures oracle.csv", "--figures must be a folder, got the file oracle.csv."),
        (
            "metrics --sampled-negatives 500 --num-entities 9999 --published mrr=98",
            "--published must be in [0.00199601, 1] for mrr, got 98.0; percentages are divided by 100.",
        ),
    ],
)  # fmt: skip
def test_the_line_shows_the_value_and_the_option(refused, monkeypatch, line, said):
    monkeypatch.chdir(INPUT)
    assert refused(*line.split()) == f"owkg: error: {said}\n"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (
            "metrics oracle.csv --no-ties",
            "--no-ties has no effect on oracle.csv, which has both ranks of each task.",
        ),
        ("metrics --list --ci 0.9", "--ci has no effect with --list, which prints all metrics."),
        ("metrics oracle.csv --list", "FILE has no effect with --list, which prints all metrics."),
        ("ir --list --format trec", "--format must be table, json or csv with --list, got trec."),
        ("ir one.run --list", "RUN has no effect with --list, which prints all measures."),
        ("train graph --epochs 1 --steps 1 --out r", "--epochs has no effect with --steps."),
        (
            "ranks filtered visits_scores.npz visits_asked.csv --during time --out o.csv",
            "--during has no effect without --known.",
        ),
    ],
)  # fmt: skip
def test_what_has_no_effect_is_refused(refused, monkeypatch, line, said):
    monkeypatch.chdir(INPUT)
    assert refused(*line.split()) == f"owkg: error: {said}\n"


# --- the source of messages


def _strings(path):
    """The strings of a module, with their lines, except docstrings."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    alone = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in alone:
            yield node.lineno, node.value


def _imported(path):
    """The modules of the command line that a module imports, and those that these import."""
    found, waiting = {path}, [path]
    while waiting:
        for node in ast.walk(ast.parse(waiting.pop().read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("owkg.cli"):
                names = [node.module, *(f"{node.module}.{one.name}" for one in node.names)]
                files = {ROOT / f"{name.replace('.', '/')}.py" for name in names}
                waiting += [file for file in files - found if file.is_file()]
                found |= {file for file in files if file.is_file()}
    return found


def _flags(words):
    return {flag for one in COMMANDS[words].params for flag in (*one.opts, *one.secondary_opts)}


SOURCES = {
    words: Path(inspect.getsourcefile(inspect.unwrap(command.callback)))
    for words, command in COMMANDS.items()
}
# Which commands call a package of the library that names options without their command.
CALLERS = {
    "judge": [("compare",), ("stability",), ("audit",)],
    "metrics": [("metrics",), ("compare",), ("stability",), ("audit",)],
    "pools": [("pool",)],
    "ranks/seeds.py": [("rank",), ("metrics",), ("compare",), ("stability",), ("audit",)],
    "train/scorer.py": [("rank",), ("classify",)],
    "train/workers.py": [("train",)],
    "conformance/runner.py": [],  # a script with options of its own
    "report/charts.py": [],  # colours of a page
    "sampling/card.py": [],  # whole command lines
    "sampling/readme.py": [],
    "terminal/process.py": [],  # options of all commands
    "models/kinds.py": [],  # of the command that made the model
    "report": [("audit",)],
}
OPTION, NAMED, COMMAND = r"(?<![\w(-])--[a-z][\w-]*", r"(?<![^\s(])`(\w+)`", r"owkg ((?:[a-z-]+ )+)"


def test_options_in_messages_are_options_of_the_commands_that_say_them():
    """In the source: of the command that a message names, else of those that a module is of or called by."""
    wrong = []
    for path in sorted((ROOT / "owkg").rglob("*.py")):
        name = path.relative_to(ROOT / "owkg").as_posix()
        if name in ("cli/main.py", "cli/commands.py", "cli/errors.py"):  # of all commands
            continue
        if name.startswith("cli/"):
            own = [words for words, source in SOURCES.items() if source == path]
            reached = own or [words for words, source in SOURCES.items() if path in _imported(source)]
        else:
            parts = name.split("/")
            reached = CALLERS.get(name, CALLERS.get(parts[0]))
        for line, text in _strings(path):
            options = re.findall(OPTION, text)
            said = [tuple(words.split()) for words in re.findall(COMMAND, text)]
            called = [words[:n] for words in said for n in (1, 2) if words[:n] in COMMANDS]
            if name.startswith("cli/") and reached:
                options += [
                    option_named(one, options_of(app, [*reached[0], "some"]))
                    for one in re.findall(NAMED, text)
                    if len(reached) == 1
                ]
                good = set().union(*map(_flags, [*called, *reached]))
            elif reached == []:
                good = set(options)
            elif called or reached is None:
                good = set().union(*map(_flags, called))
            else:
                good = set.intersection(*map(_flags, reached))
            wrong += [f"{name}:{line}: {one}" for one in options if one.startswith("--") and one not in good]
    assert wrong == []


def test_an_input_that_is_a_loop_of_links_is_named_first(refused, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.csv").symlink_to("b.csv")
    (tmp_path / "b.csv").symlink_to("a.csv")
    assert refused("metrics", "a.csv") == "owkg: error: a.csv: it is a loop of links.\n"


@pytest.mark.parametrize(
    "line", ["metrics oracle.csv --interval bca", "compare oracle.csv random.csv --metric mrr"]
)
def test_more_resamples_than_memory_holds_are_refused(refused, monkeypatch, line):
    monkeypatch.chdir(INPUT)
    message = refused(*line.split(), "--replicates", "1000000000000")
    assert "--replicates must leave memory for 1,000,000,000,000 of them: " in message
