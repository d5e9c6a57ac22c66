"""What every test shares: a backend without a display, runtime type checks, the data folder."""

import os
import signal
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from functools import wraps
from pathlib import Path
from traceback import walk_tb
from typing import Any

import jaxtyping
import numpy.typing
import pytest
from hypothesis import settings
from jaxtyping import TypeCheckError, install_import_hook, jaxtyped

# An environment variable: subprocesses get it too, and matplotlib is not imported for nothing.
os.environ["MPLBACKEND"] = "Agg"

# Commands that the tests start read the bytecode that the first of them has written.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# What one worker has compiled, another one, a command and the next run of the tests read.
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(Path(__file__).parents[1] / ".pytest_cache" / "jax"))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.1")
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES", "-1")

settings.register_profile("owkg", deadline=None, derandomize=True, max_examples=50)
settings.load_profile("owkg")

_PACKAGES = ("owkg", "family_tree", "simulations")


def _checked_modules() -> list[str]:
    root = Path(__file__).parents[1]
    files = (f for p in _PACKAGES for f in (root / p).rglob("*.py") if not f.name.startswith("__"))
    names = (".".join(f.relative_to(root).with_suffix("").parts) for f in files)
    return sorted(set(names))


# What the hook puts on every function would be compiled anew each time a function within a function is made,
# which took longer than the functions themselves. Each of these is checked when it is made the first times.
_TIMES = 10
_made: Counter[Any] = Counter()
# A check takes longer than a short function. In each process, a function is checked in its first calls
# by others.
_CALLS = 500


# A test that passes what no annotation allows asks for the refusal: the call goes on unchecked.
_TESTS = str(Path(__file__).parent)
_refusing = 0
_OURS = tuple(str(Path(__file__).parents[1] / name) for name in (*_PACKAGES, "tests"))


def _by_test() -> bool:
    """Whether a test calls the function that asks; functions of `owkg.keys` in between wrap others."""
    caller = sys._getframe(2)
    while caller.f_back is not None:
        file = caller.f_code.co_filename
        if file.startswith(_OURS) and not file.endswith("owkg/keys.py"):
            return file.startswith(_TESTS)
        caller = caller.f_back
    return False


def _first_calls(plain: Callable[..., Any], options: dict[str, Any]) -> Callable[..., Any]:
    left, checked = _CALLS, None

    @wraps(plain)
    def function(*arguments: Any, **named: Any) -> Any:
        nonlocal left, checked
        global _refusing
        if _refusing or not (left or _by_test()):
            return plain(*arguments, **named)
        left = max(left - 1, 0)
        checked = checked or jaxtyped(plain, **options)
        try:
            return checked(*arguments, **named)
        except TypeCheckError as error:
            entered = any(frame.f_code is plain.__code__ for frame, _ in walk_tb(error.__traceback__))
            if entered or not _by_test():
                raise
        _refusing += 1
        try:
            return plain(*arguments, **named)
        finally:
            _refusing -= 1

    return function


def _jaxtyped(*arguments: Any, **options: Any) -> Callable[..., Any]:
    if arguments:
        return jaxtyped(*arguments, **options)

    def decorated(it: Any) -> Any:
        code = getattr(it, "__code__", None)
        if code is None:  # a class: one that checks its own fields says what is wrong with them
            return it if hasattr(it, "__post_init__") else jaxtyped(it, **options)
        if "<locals>" not in it.__qualname__:
            return _first_calls(it, options)
        _made[code] += 1
        return jaxtyped(it, **options) if _made[code] <= _TIMES else it

    return decorated


jaxtyping.jaxtyped = _jaxtyped

# What an array can be made of, `np.asarray` says: to the protocol of NumPy, a tuple is nothing of the kind.
numpy.typing.ArrayLike = object  # pyright: ignore[reportAttributeAccessIssue]

# Before anything imports them. By PEP 484, an int is a float too.
install_import_hook(_checked_modules(), "beartype.beartype(conf=beartype.BeartypeConf(is_pep484_tower=True))")


# The files that take longest are begun first, so that workers that share out the files end together.
_LONGEST = ("test_notebooks.py", "models/test_scores.py", "simulations/test_scripts.py", "train/test_run.py")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    longest = [Path(__file__).parent / name for name in _LONGEST]
    items.sort(key=lambda item: longest.index(item.path) if item.path in longest else len(longest))


@pytest.fixture(scope="session")
def owkg_data() -> Path:
    """The folder of data sets that the environment variable OWKG_DATA names."""
    folder = os.environ.get("OWKG_DATA")
    if not folder:
        pytest.skip("OWKG_DATA is not set; it names the folder of the data sets")
    path = Path(folder)
    if not path.is_dir():
        pytest.fail(f"OWKG_DATA names no folder: {folder!r}")
    return path


@pytest.fixture(scope="module")
def quick_compilation() -> Iterator[None]:
    """Compiles with few optimisations, for tests of many programs that each run for a moment.

    What is compared to the bit is compiled as users compile it.
    """
    import jax

    before = jax.config.read("jax_disable_most_optimizations")
    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", before)
    jax.clear_caches()  # which do not tell these programs from optimised ones


@pytest.fixture
def signals():
    """The numbers of those that a process of its own hears; what hears them is in the end as before."""
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before, hook = [signal.getsignal(number) for number in numbers], sys.unraisablehook
    yield numbers
    sys.unraisablehook = hook
    for number, handler in zip(numbers, before, strict=True):
        signal.signal(number, handler)
