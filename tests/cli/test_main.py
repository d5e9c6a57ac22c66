"""The `owkg` command as its users meet it: output, exit codes, messages."""

import json
import math
import os
import re
import shlex
import signal
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import pytest

import owkg
from owkg import simulate, theory
from owkg.cli import errors
from owkg.cli.main import app, run
from owkg.rank_weights import MRR, hits_at, rank_weight
from owkg.rank_weights.registry import RANK_WEIGHTS

ROOT = Path(__file__).parents[2]

WORLD = "--sparsity 0.35 --num-answers 43 --num-entities 14505"
THEORY = f"theory --strength 0.7 {WORLD}"
POWER = f"power --strength 0.7 --other-strength 0.75 {WORLD}"
# Few trials in a small world: these are about the command, not about the numbers.
SMALL = "--sparsity 0.35 --num-answers 5 --num-entities 50"
SIMULATE = f"simulate --strength 0.7 {SMALL} --trials 64"
COMMANDS = {"theory": THEORY, "power": POWER, "simulate": SIMULATE}


@pytest.fixture
def call(call):
    """As `call`, of a line or its words."""
    return lambda line, *more: call(*(shlex.split(line) if isinstance(line, str) else line), *more)


# --- JSON


SHARED = {"metric", "strength", "sparsity", "num_answers", "num_entities", "correlation", "missing"}
THEORY_RESULTS = {
    "expectation",
    "variance",
    "lemma_expectation",
    "derivative",
    "log_approximation",
    "log_approximation_error_bound",
}
SIMULATE_RESULTS = {"mean", "variance", "standard_error", "variance_standard_error"}
POWER_RESULTS = {"required_queries", "required_queries_paired"}
QUERY_RESULTS = {"inconsistency_probability", "inconsistency_probability_paired"}


def test_theory_keys(answer):
    assert answer(THEORY).keys() == SHARED | {"prediction"} | THEORY_RESULTS


def test_simulate_keys(answer):
    found = answer(SIMULATE)
    assert found.keys() == SHARED | {"prediction", "trials", "seed"} | SIMULATE_RESULTS
    assert found["trials"] == 64
    assert type(found["trials"]) is int


def test_simulate_keys_of_a_pair(answer):
    found = answer(f"{SIMULATE} --other-strength 0.8")
    both = SIMULATE_RESULTS | {f"other_{key}" for key in SIMULATE_RESULTS} | {"covariance"}
    shown = SHARED | {"prediction", "trials", "seed", "other_strength"}
    assert both | shown <= found.keys() <= both | shown | {"other_correlation"}


def test_power_keys(answer):
    shown = SHARED | {"other_strength", "other_correlation", "inconsistency"}
    assert answer(POWER).keys() == shown | POWER_RESULTS
    more = answer(f"{POWER} --num-queries 500")
    assert more.keys() == shown | POWER_RESULTS | {"num_queries"} | QUERY_RESULTS


@pytest.mark.parametrize("line", COMMANDS.values(), ids=COMMANDS)
def test_several_metrics_give_results(answer, line):
    one = answer(line)
    several = answer(f"{line} --metric mrr --metric hits_at_10 --metric MR")
    assert several.keys() == {"results"}
    assert [row["metric"] for row in several["results"]] == ["mrr", "hits@10", "mr"]
    for key, value in one.items():
        # Compiled with others, the sums of a simulation may round differently.
        same = pytest.approx(value, rel=1e-6) if isinstance(value, float) else value
        assert several["results"][0][key] == same
    assert all(row.keys() == one.keys() for row in several["results"])


@pytest.mark.parametrize("line", COMMANDS.values(), ids=COMMANDS)
def test_json_says_what_was_asked(answer, line):
    found = answer(f"{line} --strength 0.6 --correlation 0.1")
    assert (found["strength"], found["correlation"], found["sparsity"]) == (0.6, 0.1, 0.35)
    assert found["missing"] == "independent"
    assert found["metric"] == "mrr"


# --- figures


def test_the_contract_figures_of_theory(answer):
    found = answer(THEORY)
    assert round(found["expectation"], 6) == 0.192762
    assert round(found["variance"], 7) == 0.0061811
    assert round(found["lemma_expectation"], 6) == 0.192612
    gap = abs(found["log_approximation"] - found["lemma_expectation"])
    assert gap < found["log_approximation_error_bound"] < 0.002


def test_the_contract_figures_of_power(answer):
    rows = answer(f"{POWER} --inconsistency 0.05 --metric mrr --metric p-mrr@1/2")["results"]
    needed = [(row["required_queries"], row["required_queries_paired"]) for row in rows]
    assert needed == [(1692, 1482), (150, 129)]
    assert all(type(number) is int for pair in needed for number in pair)


@pytest.mark.parametrize(("suffix", "queries"), [("", 1692), ("_paired", 1482)])
def test_the_required_queries_are_the_fewest_that_suffice(answer, suffix, queries):
    key = f"inconsistency_probability{suffix}"
    assert answer(f"{POWER} --num-queries {queries}")[key] <= 0.05
    assert answer(f"{POWER} --num-queries {queries - 1}")[key] > 0.05


def test_theory_prints_what_the_library_computes(answer):
    found = answer(f"{THEORY} --metric hits@10 --correlation 0.2 --missing popularity")
    expected = theory.moments(
        hits_at(10),
        strength=0.7,
        sparsity=0.35,
        num_answers=43,
        num_entities=14_505,
        correlation=0.2,
        missing=owkg.openworld.PopularityBased(),
    )
    assert found["expectation"] == pytest.approx(float(expected.expectation), rel=1e-12)
    assert found["variance"] == pytest.approx(float(expected.variance), rel=1e-12)


def test_simulate_prints_what_the_library_computes(answer):
    import jax

    expected = simulate.estimate(
        jax.random.key(3), MRR, strength=0.7, sparsity=0.35, num_answers=5, num_entities=50, trials=64
    )
    found = answer(f"{SIMULATE} --seed 3")
    for key in SIMULATE_RESULTS:
        assert found[key] == float(getattr(expected, key)[0])


def test_simulate_agrees_with_theory(answer):
    found = answer(f"simulate --strength 0.7 {SMALL} --trials 20000 --metric mr")
    exact = answer(f"theory --strength 0.7 {SMALL} --metric mr")
    assert abs(found["mean"] - exact["expectation"]) < 4 * found["standard_error"]
    error = found["variance_standard_error"]
    assert abs(found["variance"] - exact["variance"]) < 4 * error


@pytest.mark.parametrize("option", ["--node-spread 0.5", "--node-spread 0.05"])
def test_the_node_spread_needs_missing_node(answer, call, option):
    assert "--node-spread has no effect without --missing node" in call(f"{THEORY} {option}")[2]
    default, other = answer(f"{THEORY} --missing node"), answer(f"{THEORY} --missing node {option}")
    assert default["expectation"] != other["expectation"]


def test_the_popularity_exponent_needs_missing_popularity(answer, call):
    line = f"{THEORY} --popularity-exponent 3"
    assert "--popularity-exponent has no effect without --missing popularity" in call(line)[2]
    popular = answer(f"{line} --missing popularity")
    assert popular["expectation"] != answer(f"{THEORY} --missing popularity")["expectation"]


def test_exponent_zero_is_independent(answer):
    line = f"{THEORY} --missing popularity --popularity-exponent 0"
    assert answer(line)["expectation"] == pytest.approx(answer(THEORY)["expectation"], rel=1e-9)


def test_a_great_number_of_entities_never_wraps(call):
    # 2^32 + 1000 entities, which 32 bits would take for 1000.
    code, out, err = call(
        "simulate --strength 0.5 --sparsity 0.35 --num-answers 5 --num-entities 4294968296 "
        "--trials 64 --metric mr --format json"
    )
    if code == 2:
        assert "--num-entities" in err
    else:
        assert json.loads(out)["mean"] > 1e8


# --- nulls


def _nulls(row: dict) -> set[str]:
    return {key for key, value in row.items() if value is None}


LOG_RESULTS = {"log_approximation", "log_approximation_error_bound"}


@pytest.mark.parametrize("metric", ["hits@10", "log-mrr", "mr", "p-mrr@1/2"])
def test_the_logarithm_is_of_mrr_alone(answer, metric):
    assert _nulls(answer(f"{THEORY} --metric {metric}")) == LOG_RESULTS


def test_mrr_has_no_null(answer):
    assert _nulls(answer(THEORY)) == set()


@pytest.mark.parametrize("missing", ["node", "popularity"])
def test_the_lemma_is_of_independent_facts_alone(answer, missing):
    expected = THEORY_RESULTS - {"expectation", "variance"}
    assert _nulls(answer(f"{THEORY} --missing {missing}")) == expected


def test_scores_have_a_mean_alone(answer):
    assert _nulls(answer(f"theory --strength 0.7 {SMALL} --prediction score")) == (
        THEORY_RESULTS - {"expectation"}
    )


def test_strength_zero_has_no_logarithm(answer):
    assert _nulls(answer(f"theory --strength 0 {WORLD}")) == LOG_RESULTS


def test_an_infinite_slope_is_null(answer):
    assert "derivative" in _nulls(answer(f"theory --strength 1 --correlation 0.2 {WORLD}"))


def test_no_number_of_queries_suffices(answer):
    # The stronger model's answers are missing: it looks weaker however many queries there are.
    line = f"power --strength 0.7 --other-strength 0.71 {WORLD} --correlation -0.5"
    found = answer(f"{line} --other-correlation 0.4 --num-queries 100")
    assert found["required_queries"] is None
    assert found["required_queries_paired"] is None
    assert found["inconsistency_probability"] > 0.5


# --- histograms


def test_a_histogram_of_one_number_is_that_number(answer):
    line = "theory --strength 0.7 --sparsity 0.35 --num-entities 14505 --num-answers"
    one, weighted = answer(f"{line} 43"), answer(f"{line} 43:7")
    assert {k: v for k, v in weighted.items() if k in THEORY_RESULTS} == pytest.approx(
        {k: v for k, v in one.items() if k in THEORY_RESULTS}, rel=1e-12
    )


def test_a_histogram_averages(answer):
    line = "theory --strength 0.7 --sparsity 0.35 --num-entities 14505 --num-answers"
    few, many, mixed = (answer(f"{line} {n}") for n in ("12", "43", "12:300,43:200"))
    assert mixed["num_answers"] == "12:300,43:200"
    for key in THEORY_RESULTS - {"variance"}:
        assert mixed[key] == pytest.approx(0.6 * few[key] + 0.4 * many[key], rel=1e-12)
    between = 0.6 * 0.4 * (few["expectation"] - many["expectation"]) ** 2
    within = 0.6 * few["variance"] + 0.4 * many["variance"]
    assert mixed["variance"] == pytest.approx(within + between, rel=1e-9)


def test_a_histogram_works_for_every_missing_model_and_for_scores(answer):
    line = "theory --strength 0.7 --sparsity 0.35 --num-entities 50 --num-answers 3:1,5:2.5"
    for option in ("--missing node", "--missing popularity", "--prediction score"):
        assert 0 < answer(f"{line} {option}")["expectation"] < 1


def test_power_takes_a_histogram(answer):
    line = "power --strength 0.7 --other-strength 0.75 --sparsity 0.35 --num-entities 14505"
    one = answer(f"{line} --num-answers 43:5")
    assert (one["required_queries"], one["required_queries_paired"]) == (1692, 1482)
    mixed = answer(f"{line} --num-answers 12:300,43:200")["required_queries"]
    few = answer(f"{line} --num-answers 12")["required_queries"]
    assert few != mixed != 1692


# --- bad input


WITHOUT_ANSWERS = "--sparsity 0.35 --num-entities 14505"
BAD = [
    # What is no such command or option, or is left out.
    ("bogus", "bogus"),
    ("--bogus", "--bogus"),
    (f"{THEORY} --bogus 1", "--bogus"),
    (f"{THEORY} extra", "extra"),
    ("theory", "--strength"),
    ("theory --strength 0.7", "--sparsity"),
    (f"theory --strength 0.7 {WITHOUT_ANSWERS}", "--num-answers"),
    ("theory --strength 0.7 --sparsity 0.35 --num-answers 43", "--num-entities"),
    (f"power --strength 0.7 {WORLD}", "--other-strength"),
    (f"{THEORY} --strength", "--strength"),
    # Numbers that cannot be read, and one or two that the library refuses by name (tests/openworld).
    *((f"{THEORY} --strength {bad}", "--strength") for bad in ("x", "''", "nan", "2")),
    *((f"{THEORY} --sparsity {bad}", "--sparsity") for bad in ("x", "0", "1e400")),
    *((f"{THEORY} --correlation {bad}", "--correlation") for bad in ("x", "0.9")),
    *((f"{THEORY} --num-entities {bad}", "--num-entities") for bad in ("x", "43", "1.5", "9" * 25)),
    *(
        (f"{THEORY} --num-answers {bad}", "--num-answers")
        for bad in ("x", "''", "0", "1.5", "nan", "1e3", "14505", "9" * 25)
    ),
    *(
        (f"{THEORY} --num-answers {bad}", "--num-answers")
        for bad in ("12:", ":3", "12:3,", "12:3,12:4", "12:x", "12:3:4", "0:3", "1.5:2", "12;3:4")
    ),
    *(
        (f"{THEORY} --num-answers {bad}", "--num-answers")
        for bad in ("12:-1", "12:nan", "12:inf", "12:0", "12:0,43:0", "14505:1")
    ),
    (f"{POWER} --num-answers 12:-1", "--num-answers"),
    (f"{SIMULATE} --num-answers 12:3,43:4", "--num-answers"),
    *((f"{THEORY} --missing node --node-spread {bad}", "--node-spread") for bad in ("x", "0")),
    (f"{THEORY} --missing popularity --popularity-exponent inf", "--popularity-exponent"),
    (f"{POWER} --strength 2", "--strength"),
    *((f"{POWER} --other-strength {bad}", "--other-strength") for bad in ("2", "0.7")),
    *((f"{POWER} --other-correlation {bad}", "--other-correlation") for bad in ("x", "0.9")),
    (f"{POWER} --correlation 0.9", "--correlation"),
    # Feasible for the first model, and not for the second.
    (f"{POWER} --other-strength 0.95 --correlation 0.4", "--correlation"),
    *((f"{POWER} --inconsistency {bad}", "--inconsistency") for bad in ("nan", "0", "0.5", "1")),
    *((f"{POWER} --num-queries {bad}", "--num-queries") for bad in ("0", "1.5", "9" * 25)),
    *((f"{SIMULATE} --trials {bad}", "--trials") for bad in ("1", "1.5", "9" * 25)),
    *((f"{SIMULATE} --seed {bad}", "--seed") for bad in ("x", "-1", "9" * 25)),
    (f"{SIMULATE} --other-strength 2", "--other-strength"),
    (f"{SIMULATE} --other-correlation 0.1", "--other-correlation"),
    (f"{SIMULATE} --other-strength 0.8 --other-correlation 2", "--other-correlation"),
    (f"{SIMULATE} --num-answers 50", "--num-entities"),
    (f"{SIMULATE} --strength 1 --prediction score", "--strength"),
    (f"theory --strength 0 {SMALL} --prediction score", "--strength"),
    # Choices.
    (f"{THEORY} --missing nodes", "--missing"),
    (f"{THEORY} --prediction guess", "--prediction"),
    (f"{THEORY} --format xml", "--format"),
    (f"{POWER} --prediction score", "--prediction"),
    # Metrics.
    *((f"{THEORY} --metric {bad}", "--metric") for bad in ("''", "xyzzy", "hits@0", "mrr,xyzzy")),
    (f"{POWER} --metric hits@0", "--metric"),
    (f"{SIMULATE} --metric hits@0", "--metric"),
]


def test_a_variable_of_the_shell_that_is_not_set(call):
    """No text for a path would be the current folder."""
    assert call("metrics ''") == (2, "", "owkg: error: argument 2 is empty; is a shell variable unset?\n")


@pytest.mark.parametrize(("line", "named"), BAD, ids=lambda part: part[-50:])
def test_bad_input_is_one_line_and_exit_code_2(refused, line, named):
    err = refused(line)
    assert re.search(rf"(?<![\w-]){re.escape(named)}(?![\w-])", err)
    # What the user typed is an option, not a Python argument.
    assert "`" not in err
    assert ",," not in err


@pytest.mark.parametrize("line", [["bo\ngus"], [*THEORY.split(), "ex\ntra"], ["--bo\ngus"]])
def test_a_message_of_several_lines_becomes_one(refused, line):
    refused(line)


def test_the_feasible_interval_is_shown(call):
    err = call(f"{THEORY} --correlation 0.9")[2]
    assert "[-0.892143, 0.480384]" in err
    assert "0.9" in err


def test_a_near_metric_is_suggested(call):
    assert "did you mean mrr" in call(f"{THEORY} --metric mrrr")[2]


def test_nothing_at_all_shows_the_help(call):
    code, out, err = call([])
    assert code in (0, 2)
    assert "Usage" in out + err
    assert all(command in out + err for command in COMMANDS)
    # An error line with no error in it helps nobody.
    assert "error: \n" not in err


@pytest.mark.parametrize("line", COMMANDS.values(), ids=COMMANDS)
def test_success_leaves_standard_error_alone(call, line):
    for form in ("table", "json"):
        code, out, err = call(f"{line} --format {form}")
        assert code == 0
        assert out
        assert err == ""


# --- seeds


def test_the_same_seed_gives_identical_output(call):
    one, again = call(f"{SIMULATE} --seed 7"), call(f"{SIMULATE} --seed 7")
    assert one[0] == 0
    assert one == again
    assert call(f"{SIMULATE} --seed 8")[1] != one[1]


def test_the_seed_is_zero_unless_given(answer):
    assert answer(SIMULATE) == answer(f"{SIMULATE} --seed 0")


@pytest.mark.parametrize("seed", [2**32, 2**32 + 7, 2**63 - 1, 2**63])
def test_a_great_seed_is_its_own_or_refused(call, answer, seed):
    line = f"{SIMULATE} --seed {seed} --format json"
    code, out, err = call(line)
    if code == 2:
        assert "--seed" in err
    else:
        # jax keeps 32 bits of it unless 64-bit types are enabled.
        assert json.loads(out)["mean"] != answer(f"{SIMULATE} --seed {seed % 2**32}")["mean"]


# --- help


def test_help_lists_the_commands(call):
    code, out, err = call("--help")
    assert (code, err) == (0, "")
    assert all(command in out for command in COMMANDS)


EXAMPLES = [
    line.strip()
    for command in app.registered_commands
    if command.callback.__name__ in COMMANDS  # others have tests of their own
    for line in (command.epilog or "").splitlines()
    if line.strip().startswith("owkg ")
]


def test_every_command_has_examples():
    assert {example.split()[1] for example in EXAMPLES} == COMMANDS.keys()


@pytest.mark.parametrize("example", EXAMPLES)
def test_every_example_in_the_help_runs(call, example):
    line = example.removeprefix("owkg ")
    # The examples' own number of trials would only cost time here.
    code, out, err = call(f"{line} --trials 64" if line.startswith("simulate") else line)
    assert code == 0, err
    assert out


def test_version(call):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert owkg.__version__ == project["version"]
    assert call("--version") == (0, f"owkg {owkg.__version__}\n", "")


# --- tables


@pytest.mark.parametrize("line", COMMANDS.values(), ids=COMMANDS)
def test_the_table_says_what_the_json_says(call, answer, line):
    row, (code, out, _) = answer(line), call(line)
    assert code == 0
    assert row["metric"] in out
    for key in THEORY_RESULTS | SIMULATE_RESULTS | POWER_RESULTS:
        if key not in row:
            continue
        value = f"{row[key]:,}" if isinstance(row[key], int) else f"{row[key]:.6g}"
        assert re.search(rf"^\s*{key.replace('_', ' ')}\s+{re.escape(value)}\s*$", out, re.MULTILINE)


def test_the_table_of_theory(call):
    out = call(f"{THEORY} --metric mrr --metric hits@10")[1]
    assert "strength 0.7" in out
    assert "sparsity 0.35" in out
    assert re.search(r"mrr\s+hits@10", out)
    assert re.search(r"expectation\s+0\.192762\s+0\.59925", out)
    assert re.search(r"log approximation\s+0\.193\d+\s+-\s", out)
    assert "null" not in out
    assert "None" not in out


@pytest.mark.parametrize("width", ["80", "200"])
def test_a_wide_table_loses_no_digits(call, monkeypatch, width):
    monkeypatch.setenv("COLUMNS", width)
    names = ["mrr", "hits@1", "hits@10", "hits@100", "log-mrr", "p-mrr@1/3", "mr"]
    out = call(f"{THEORY} {' '.join(f'--metric {name}' for name in names)}")[1]
    assert "…" not in out
    for name in names:
        assert name in out
        value = theory.expectation(
            rank_weight(name), strength=0.7, sparsity=0.35, num_answers=43, num_entities=14_505
        )
        assert f"{float(value):.6g}" in out


def test_a_table_in_a_file_has_no_escape_codes(call):
    assert "\x1b" not in call(THEORY)[1]


# --- interrupts, and the installed command


@pytest.mark.parametrize(
    ("line", "target"),
    [
        (THEORY, (theory, "closed_forms")),
        (POWER, (theory, "queries_to_tell_apart")),
        (SIMULATE, (simulate, "estimate")),
    ],
    ids=COMMANDS,
)
def test_an_interrupt_is_exit_code_130(call, monkeypatch, line, target):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(*target, interrupted)
    code, out, err = call(line)
    assert code == 130
    assert out == ""
    assert err.strip() == "owkg: interrupted"
    assert err.count("\n") == 1


class JaxRuntimeError(RuntimeError):
    """As JAX calls what its devices say."""


@pytest.mark.parametrize(
    "words",
    [
        "RESOURCE_EXHAUSTED: Out of memory allocating 4096 bytes.\nBuffers: many",
        "INTERNAL: CUDA_ERROR_OUT_OF_MEMORY: out of memory",
    ],
)
def test_a_device_without_memory_is_one_line(refused, monkeypatch, words):
    def full(*_, **__):
        raise JaxRuntimeError(words)

    monkeypatch.setattr(theory, "closed_forms", full)
    err = refused(THEORY)
    assert err == f"owkg: error: this takes more memory than there is: {words.splitlines()[0]}\n"


def test_other_errors_of_a_device_keep_their_traceback(call, monkeypatch):
    def broken(*_, **__):
        raise JaxRuntimeError("INTERNAL: no idea")

    monkeypatch.setattr(theory, "closed_forms", broken)
    with pytest.raises(JaxRuntimeError):
        call(THEORY)


def test_a_bug_is_not_bad_input(call, monkeypatch):
    # Only what the user got wrong may be told in one line; a defect must keep its traceback.
    def broken(*_, **__):
        raise ZeroDivisionError

    monkeypatch.setattr(theory, "closed_forms", broken)
    with pytest.raises(ZeroDivisionError):
        call(THEORY)


@pytest.mark.usefixtures("signals")
@pytest.mark.parametrize(("line", "code"), [("--version", 0), ("theory --strength 2", 2)])
def test_the_installed_command_exits_with_the_code(monkeypatch, line, code):
    monkeypatch.setattr(sys, "argv", ["owkg", *line.split()])
    with pytest.raises(SystemExit) as stopped:
        run()
    assert stopped.value.code == code


def test_python_m_owkg():
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-m", "owkg", *THEORY.split(), "--format", "json"],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert round(json.loads(done.stdout)["expectation"], 6) == 0.192762


def test_the_output_names_every_number_that_decides_it(answer):
    assert answer(f"{THEORY} --missing node --node-spread 0.3")["node_spread"] == 0.3
    assert answer(f"{POWER} --missing popularity --popularity-exponent 2")["popularity_exponent"] == 2
    assert "node_spread" not in answer(THEORY)
    pair = answer(f"{SIMULATE} --other-strength 0.6 --other-correlation 0.1")
    assert (pair["other_strength"], pair["other_correlation"]) == (0.6, 0.1)


def test_being_terminated_leaves_nothing_half_done(tmp_path):
    command = [sys.executable, "-m", "owkg", "family-tree", "generate", str(tmp_path / "big")]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    running = subprocess.Popen([*command, "--num-trees", "100000"], env=environment)
    for _ in range(1200):
        if any(tmp_path.glob(".big.*/facts.tsv")):
            break
        time.sleep(0.05)
    running.terminate()
    assert running.wait(60) == 143
    assert list(tmp_path.iterdir()) == []


def process(*arguments: str, code: str = "") -> subprocess.Popen[str]:
    """The command in a process that hears SIGINT, whatever the tests are run by; or `code` before it."""
    begin = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
    command = [sys.executable, "-c", f"{begin}{code}\nfrom owkg.__main__ import main; main()", *arguments]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(command, env=os.environ | {"PYTHONPATH": str(ROOT)}, **pipes)


# Ten seconds and more in one compiled call each, which Python does not hear a signal in.
LONG = {
    "theory": "--strength 0.7 --sparsity 0.35 --num-answers 14000 --num-entities 1000000 --missing node",
    "simulate": "--strength 0.7 --sparsity 0.35 --num-answers 3000 --num-entities 1000000 "
    "--trials 20000000 --prediction score",
}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("command", LONG)
def test_a_signal_ends_a_long_call(command, number):
    code = "import owkg.cli.errors as e; h = e.signal.signal\n"
    code += "e.signal.signal = lambda *a: (print('ready', flush=True) if a[1] == 0 else 0, h(*a))[1]"
    running = process(command, *LONG[command].split(), code=code)
    assert running.stdout.readline() == "ready\n"
    time.sleep(2)
    running.send_signal(number)
    running.communicate(timeout=30)
    assert running.returncode == -number  # 130 or 143 in a shell


def test_an_interrupt_during_the_imports_is_one_line():
    code = (
        "import sys, signal\n"
        "class Finder:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name == 'owkg.cli.main': signal.raise_signal(signal.SIGINT)\n"
        "sys.meta_path.insert(0, Finder())"
    )
    running = process("theory", code=code)
    out, err = running.communicate()
    assert (running.returncode, out, err) == (130, "", "owkg: interrupted\n")


@pytest.mark.parametrize(("name", "line"), [("SIGINT", "owkg: interrupted\n"), ("SIGTERM", "")])
def test_a_signal_while_garbage_is_collected_is_heard(name, line):
    """Python drops what a callback of the collector raises."""
    code = (
        "import gc, time, owkg.cli.errors, owkg.cli.main as m\n"
        f"def callback(*_): gc.callbacks.remove(callback); signal.raise_signal(signal.{name})\n"
        "def work(): gc.callbacks.append(callback); gc.collect(); time.sleep(600)\n"
        "m.main = lambda: owkg.cli.errors.guarded('owkg', work)"
    )
    running = process(code=code)
    _, err = running.communicate(timeout=60)
    assert (running.returncode, err) == (128 + signal.Signals[name], line)


def test_signals_are_as_before_after_a_call_that_they_may_end(call, signals):
    before = [signal.getsignal(number) for number in signals]
    with errors.ended_at_once():  # no process of its own
        assert [signal.getsignal(number) for number in signals] == before
    errors.heard()
    with errors.ended_at_once():
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    assert call(THEORY)[0] == 0
    hung_up = before[2] if before[2] is signal.SIG_IGN else errors._terminated  # ignored under nohup
    assert [signal.getsignal(number) for number in signals] == [before[0], errors._terminated, hung_up]


@pytest.mark.parametrize("arguments", [THEORY.split(), ["--help"], ["metrics", "--list"]], ids=" ".join)
def test_output_that_nobody_reads_ends_as_a_closed_pipe_does(arguments):
    """And not as a difference (1), bad input (2) or success."""
    running = process(*arguments)
    running.stdout.close()
    running.stdout = None
    assert running.communicate() == (None, "")
    assert running.returncode == 128 + signal.SIGPIPE


@pytest.mark.parametrize(
    "line", ["", "theory", "train", "kg", "kg info", "family-tree verify", "ranks convert"]
)
def test_h_is_help(call, line):
    assert call(f"{line} -h") == call(f"{line} --help")
    assert call(f"{line} -h")[0] == 0


def test_all_metrics_and_the_least_over_all_rank_weights(answer, call, refused):
    found = answer(f"{POWER} --all-metrics")
    needed = {row["metric"]: row["required_queries"] for row in found["results"]}
    assert (needed["mrr"], needed["p-mrr@0.5"]) == (1692, 150)
    assert found["floor"] == {
        "any_weight": 14,
        "decreasing_weight": 16,
        "any_weight_paired": 13,
        "decreasing_weight_paired": 16,
    }
    more = answer(f"{POWER} --all-metrics --metric p-mrr@0.3,mrr")["results"]
    assert [row["metric"] for row in more] == [*needed, "p-mrr@0.3"]
    _, out, _ = call(f"{POWER} --all-metrics")
    assert (
        "least queries over weights that are constant beyond the answers: 14 (paired 13); over weights that "
        "fall with the rank: 16" in out
    )
    histogram = POWER.replace("--num-answers 43", "--num-answers 12:1,43:2")
    assert "--all-metrics needs one number of answers" in refused(f"{histogram} --all-metrics")


def test_all_metrics_are_those_of_the_registry(answer):
    found = answer(f"{POWER} --all-metrics")
    names = [row["metric"] for row in found["results"]]
    assert len(names) == len(set(names))
    for entry in RANK_WEIGHTS:
        metric = rank_weight(entry.example)
        assert (metric.name in names) == (metric.link is None)


@pytest.mark.parametrize("ending", ["", "_paired"])
def test_the_frontier_of_focus(answer, ending):
    found = answer(f"{POWER} --all-metrics")
    frontier = found["frontier"]
    assert [row["focus"] * row["depth"] for row in frontier] == pytest.approx([1] * len(frontier))
    queries = [row[f"required_queries{ending}"] for row in frontier]
    assert queries == sorted(queries, reverse=True)  # from a focus of 1 down
    assert queries[-1] == found["floor"][f"decreasing_weight{ending}"]
    of = {row["metric"]: row for row in found["results"]}
    assert (of["hits@1"]["focus"], of["hits@10"]["focus"]) == pytest.approx((1, 0.1))
    for row in found["results"]:
        assert row[f"least_queries{ending}"] <= row[f"required_queries{ending}"]
        between = [one[f"required_queries{ending}"] for one in frontier if one["focus"] >= row["focus"]]
        assert row[f"least_queries{ending}"] <= (between or [math.inf])[-1]
    assert of["mrr"]["least_queries"] == 33


def test_the_figure_of_focus(call, refused, tmp_path):
    path = tmp_path / "focus.png"
    code, out, err = call(f"{POWER} --all-metrics --figure {path}")
    assert (code, f"wrote {path}" in err, "least queries" in out) == (0, True, True)
    assert path.read_bytes().startswith(b"\x89PNG")
    for line, message in (
        (f"{POWER} --figure {path}", "--figure needs --all-metrics"),
        (f"{POWER} --all-metrics --figure {tmp_path}/a.txt", "--figure must end in .png, .pdf or .svg"),
    ):
        assert message in refused(line)


def test_no_number_suffices_for_any_weight_that_falls(call):
    line = "power --strength 0.7 --other-strength 0.701 --sparsity 0.35 --num-answers 1 --num-entities 40"
    code, out, _ = call(f"{line} --other-correlation 0.3 --all-metrics")
    assert (code, "fall with the rank: - (paired -)" in out) == (0, True)
