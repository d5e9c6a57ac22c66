"""Commands in unusual environments: some of the cells of `matrix.py`, each way of ending among them."""

import importlib.util
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import typer

from owkg.cli.main import app

# By its path: the tests are no package.
_SPEC = importlib.util.spec_from_file_location("environments_matrix", Path(__file__).with_name("matrix.py"))
matrix = importlib.util.module_from_spec(_SPEC)
sys.modules[_SPEC.name] = matrix
_SPEC.loader.exec_module(matrix)

# What is right in an environment, and what ends in one line.
CELLS = [
    ("x64", "align", "right"),
    ("nans", "train (negatives)", "right"),
    ("cuda", "simulate", "one line"),
    ("bogus platform", "train (negatives)", "one line"),
    ("cuda", "metrics", "right"),
    ("no threads", "theory", "one line"),
    ("ASCII", "metrics", "right"),
    ("warnings", "metrics", "right"),
    ("optimised", "help", "right"),
    ("stdin closed", "theory", "right"),
    ("stdout closed", "theory", "right"),
    ("stderr closed", "metrics", "right"),
    ("stdout full", "theory", "one line"),
    ("folder gone", "theory", "right"),
    ("64 files", "metrics", "right"),
    ("platform name", "metrics", "right"),
    ("default device", "train (negatives)", "one line"),
    ("700 MB", "metrics", "one line"),
    ("700 MB", "help", "right"),
    ("cuda", "example", "one line"),
]


@pytest.fixture(scope="module")
def given(tmp_path_factory):
    return matrix.prepared(tmp_path_factory.mktemp("given"), made=False)


@pytest.fixture(scope="module")
def usual(given):
    """What a command does in an ordinary environment, once for all cells."""
    found = {}

    def of(command):
        if command not in found:
            found[command] = matrix.outcome(given, command)
            assert found[command].code == 0, found[command].err
        return found[command]

    return of


def test_every_command_is_in_the_matrix():
    """Except former names, which are no command of a panel; `owkg rules DIR` is `owkg rules mine DIR`."""

    def commands(group, *names):
        for name, one in getattr(group, "commands", {}).items():
            yield from commands(one, *names, name)
        if not hasattr(group, "commands"):
            yield " ".join(names)

    known = set(commands(typer.main.get_command(app)))
    lines = [f"{line} " for line in matrix.COMMANDS.values()]
    missing = {name for name in known if not any(line.startswith(f"{name} ") for line in lines)}
    assert missing == {"evaluate", "rules mine"}
    assert "rules graph " in " ".join(lines)


@pytest.mark.parametrize(("environment", "command", "expected"), CELLS)
def test_a_command_is_right_or_ends_in_one_line(given, usual, environment, command, expected):
    where = matrix.ENVIRONMENTS[environment]
    found = matrix.outcome(given, command, where)
    assert matrix.verdict(usual(command), found, where) == expected, found


@pytest.mark.parametrize(
    ("variables", "words"),
    [
        ({"JAX_NUM_CPU_DEVICES": "0"}, "JAX cannot start (Unable to initialize backend 'cpu'"),
        ({"JAX_PLATFORMS": "tpu"}, "JAX_PLATFORMS is 'tpu', and JAX finds no such device here"),
        ({"JAX_PLATFORM_NAME": "gpu"}, "JAX_PLATFORM_NAME is 'gpu', and JAX finds no such device here;"),
        ({"JAX_DEFAULT_DEVICE": "tpu"}, "JAX_DEFAULT_DEVICE is 'tpu', and JAX finds no such device here;"),
        (
            {"POLARS_MAX_THREADS": "-2"},
            "POLARS_MAX_THREADS must be a number of threads, from 1 to 1024, got '-2'",
        ),
        (
            {"POLARS_MAX_THREADS": "1000000"},
            "POLARS_MAX_THREADS must be a number of threads, from 1 to 1024, got '1000000'.",
        ),
        (
            {"POLARS_MAX_THREADS": "two"},
            "POLARS_MAX_THREADS must be a number of threads, from 1 to 1024, got 'two'.",
        ),
    ],
)
def test_the_line_names_the_variable(given, variables, words):
    found = matrix.outcome(given, "simulate", matrix.Environment("", variables))
    assert (found.code, found.out) == (2, "")
    assert found.err.startswith(f"owkg: error: {words}")
    assert len(found.err.splitlines()) == 1


def test_an_ascii_terminal_gets_escapes_and_a_note(given):
    (given / "cities.csv").write_text((given / "oracle.csv").read_text().replace(",oracle,", ",Zürich,"))
    where = matrix.ENVIRONMENTS["ASCII"]
    environ = matrix.environ(where.variables)
    command = [sys.executable, "-m", "owkg", "metrics", "cities.csv", "oracle.csv", "--metric", "mrr"]
    done = subprocess.run(command, cwd=given, env=environ, capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert "Z\\xfcrich" in done.stdout
    assert done.stderr.count("owkg: note: standard output accepts only ascii") == 1


@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP"])
def test_a_signal_ends_a_command_in_order(name):
    code = (
        "import signal, time, owkg.cli.errors, owkg.cli.main as m\n"
        "signal.signal(signal.SIGHUP, signal.SIG_DFL)\n"  # ignored under nohup
        "def work():\n"
        "    try: print('ready', flush=True); time.sleep(60)\n"
        "    finally: print('put away', flush=True)\n"
        "m.main = lambda: owkg.cli.errors.guarded('owkg', work)\n"
        "from owkg.__main__ import main; main()"
    )
    running = subprocess.Popen(
        [sys.executable, "-c", code],
        env=matrix.environ({}),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert running.stdout.readline() == "ready\n"
    running.send_signal(signal.Signals[name])
    assert running.communicate() == ("put away\n", "")
    assert running.returncode == 128 + signal.Signals[name]


def test_ctrl_c_while_simulations_are_imported_is_one_line():
    code = (
        "import runpy, signal, sys\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "class Finder:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name == 'polars':\n"
        "            try: signal.raise_signal(signal.SIGINT)\n"
        "            except KeyboardInterrupt: raise ImportError('as extensions do') from None\n"
        "sys.meta_path.insert(0, Finder())\n"
        "sys.argv, sys.orig_argv = ['-m'], ['python', '-m', 'simulations.yang2022']\n"
        "runpy.run_module('simulations.yang2022', run_name='__main__', alter_sys=True)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env=matrix.environ({}), capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (130, "")
    assert done.stderr == "python -m simulations.yang2022: interrupted\n"
