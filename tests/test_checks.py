"""What the checks at the public boundary let pass, and what they say of the rest."""

import importlib.util
import pickle
from pathlib import Path

import jaxtyping
import numpy as np
import pytest

from owkg import checks
from owkg.errors import ArgumentError, naming


@pytest.mark.parametrize(
    "value", [0, 2**53 - 1, 3.0, np.uint64(7), [1, 2], np.array([[3]], np.int8), np.float32(2), [4.0, 5]]
)
def test_whole_numbers(value):
    found = checks.integer("n", value, 0)
    assert found.dtype == np.int64
    assert found.tolist() == np.asarray(value).tolist()


@pytest.mark.parametrize("value", [2**53, 2**53 + 1, 2**63, 2**64, 10**40, 2.0**53, 1e300, np.uint64(2**63)])
def test_whole_numbers_that_are_too_large_are_said_to_be(value):
    with pytest.raises(ValueError, match=r"`n` must be a whole number of at least 1 and below 2\*\*53, got "):
        checks.integer("n", value, 1)
    with pytest.raises(ValueError, match=r"below 2\*\*53, got .* at index \(1,\)\.$"):
        checks.integer("n", [3, value], 1)


@pytest.mark.parametrize(
    "value", [0, -1, -(2**70), 1.5, np.inf, np.nan, True, "3", None, [2**70, None], [[1], [2, 3]]]
)
def test_what_is_no_whole_number(value):
    with pytest.raises(ValueError, match=r"`n` must be a whole number of at least 1, got "):
        checks.integer("n", value, 1)


@pytest.mark.parametrize("value", [0, 5, 2**53, 2**64, 10**40, np.int64(3), 5.0])
def test_seeds_are_of_any_size(value):
    found = checks.seed("seed", value)
    assert type(found) is int
    assert found == value


@pytest.mark.parametrize("value", [-1, -(2**70), 0.5, True, "3", None, [1, 2], 2.0**60])
def test_what_is_no_seed(value):
    with pytest.raises(ValueError, match="`seed` must be"):
        checks.seed("seed", value)


def test_flags():
    assert checks.flag("f", True) is checks.flag("f", np.True_) is True
    assert checks.flag("f", False) is False
    for value in ("no", 0, 1, None, [True]):
        with pytest.raises(ValueError, match="`f` must be True or False, got "):
            checks.flag("f", value)


def test_paths():
    assert checks.path("p", "folder") == checks.path("p", Path("folder")) == Path("folder")
    for value in (3, None, b"folder", ["folder"]):
        with pytest.raises(ValueError, match="`p` must be a path, got "):
            checks.path("p", value)


@pytest.mark.parametrize("level", [1e-300, 1e-16, 9.9e-7, 0, 1, 1 - 1e-7, float("nan")])
def test_a_level_that_has_no_quantile_is_refused(level):
    with pytest.raises(ValueError, match=r"`ci` must be in \[1e-06, 0.999999\]"):
        checks.level("ci", level)
    assert checks.level("ci", 1e-6) == 1e-6


def test_an_argument_error_names_its_argument():
    with pytest.raises(ArgumentError, match=r"^`n` must be True or False, got 3\.$") as caught:
        checks.flag("n", 3)
    assert isinstance(caught.value, ValueError)
    copy = pickle.loads(pickle.dumps(caught.value))  # noqa: S301 - our own, as between processes
    assert (copy.name, str(copy)) == ("n", str(caught.value))


@pytest.mark.parametrize("value", [3, 3.0, np.int8(3), np.array(3)])
def test_one_whole_number(value):
    found = checks.whole("k", value, 1)
    assert found == 3
    assert type(found) is int


@pytest.mark.parametrize("value", [0, 1.5, [1, 2], "3", None])
def test_what_is_no_one_whole_number(value):
    with pytest.raises(ArgumentError) as caught:
        checks.whole("k", value, 1)
    assert caught.value.name == "k"


def test_names():
    assert checks.names("by", "side") == ["side"]
    assert checks.names("by", ("side", "ties")) == ["side", "ties"]
    for bad in (None, 3, [3], [["side"]], b"side"):
        with pytest.raises(ArgumentError) as caught:
            checks.names("by", bad)
        assert caught.value.name == "by"


def test_annotations_are_checked_while_tests_run():
    spec = importlib.util.find_spec("owkg.evaluation.correction")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)  # a copy: of the module itself, other tests may have used up the checks
    # As if a module of owkg called it; a test that calls it so wants to see what it answers.
    call = compile("called('many')", str(Path(spec.origin or "").parent / "other.py"), "eval")
    with pytest.raises(jaxtyping.TypeCheckError, match="block_edges"):
        eval(call, {"called": module.block_edges})  # noqa: S307
    with pytest.raises(TypeError, match="not supported between"):
        module.block_edges("many")


def test_an_error_that_names_nothing_keeps_its_trace():
    def fail():
        raise ValueError("no argument")

    with pytest.raises(ValueError, match=r"^no argument$") as caught, naming({"a": "`b`"}):
        fail()
    assert caught.traceback[-1].name == "fail"


@pytest.mark.parametrize(
    ("names", "where", "text", "name"),
    [
        ({"a": "`b`"}, "", "`b` must not be `c`", "b"),
        ({"a": "FILE"}, "", "FILE must not be `c`", None),
        ({"c": "`d`"}, "", "`a` must not be `d`", "a"),
        (str, "x.toml: ", "x.toml: a must not be c", None),
    ],
)
def test_an_error_is_named_as_where_its_argument_came_from(names, where, text, name):
    with pytest.raises(ValueError, match="must not be") as caught, naming(names, where):
        raise ArgumentError("a", "must not be `c`")
    assert str(caught.value) == text
    assert getattr(caught.value, "name", None) == name
