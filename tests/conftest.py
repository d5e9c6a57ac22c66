"""What every test shares: a backend without a display, runtime type checks, the data folder."""

import os
import signal
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from functools import wraps
from pathlib import Path
from typing import Any

import jaxtyping
import pytest
from hypothesis import settings
from jaxtyping import install_import_hook, jaxtyped

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

# Modules that cannot be checked yet. Either an annotation promises more than the module keeps, or a
# public function says `int` and answers the rest with a ValueError, which beartype would forestall.
_UNCHECKED = {
    "owkg.cli.commands",  # typer.Context is what typer promises, and not what it gives
    "owkg.cli.main",  # `version: bool` is None unless given
    "owkg.judge.compare",  # choices are refused by ValueError
    "owkg.ranks.table",  # refuses by ValueError
    "owkg.theory.summary",  # refuses by ValueError
    "owkg.judge.relabelled",  # refuses by ValueError
    "owkg.judge.scores",  # refuses by ValueError
    "owkg.judge.systems",  # refuses by ValueError
    "owkg.kg.categories",  # refuses by ValueError
    "owkg.kg.known",  # refuses by ValueError
    "owkg.kg.popularity",  # refuses by ValueError
    "owkg.rank_weights.catalogue",  # `k: int` is given floats; refuses by ValueError
    "owkg.metrics.front",  # refuses by ValueError
    "owkg.metrics.measures",  # `cutoff: int` is given floats; refuses by ValueError
    "owkg.rank_weights.rank_weight",  # refuses by ValueError
    "owkg.metrics.registry",  # refuses by ValueError
    "owkg.models.betae",  # options of other types are refused by ValueError
    "owkg.models.complex",  # options of other types are refused by ValueError
    "owkg.models.conve",  # options of other types are refused by ValueError
    "owkg.models.distmult",  # options of other types are refused by ValueError
    "owkg.models.protate",  # options of other types are refused by ValueError
    "owkg.models.rescal",  # options of other types are refused by ValueError
    "owkg.models.rotate",  # options of other types are refused by ValueError
    "owkg.models.transe",  # options of other types are refused by ValueError
    "owkg.models.tucker",  # options of other types are refused by ValueError
    "owkg.openworld.missing",  # `np.ndarray` where NumPy scalars come and go; refuses by ValueError
    "owkg.openworld.prediction",  # `np.ndarray` where NumPy scalars come and go
    "owkg.ranks.files",  # refuses by ValueError
    "owkg.simulate.classification",  # strengths are `""`, and work for `[size]` as well
    "owkg.simulate.estimate",  # `np.ndarray` where NumPy scalars come and go; refuses by ValueError
    "owkg.simulate.missing",  # refuses by ValueError
    "owkg.theory.grids",  # `largest: int` is given NumPy integers
    "owkg.theory.missing_counts",  # refuses by ValueError
    "owkg.theory.moments",  # refuses by ValueError
    "owkg.theory.power",  # `np.ndarray` where NumPy scalars come and go; refuses by ValueError
    "owkg.theory.scores",  # refuses by ValueError
    "owkg.train.config",  # refuses by ValueError
}


def _checked_modules() -> list[str]:
    root = Path(__file__).parents[1]
    packages = ("owkg", "family_tree", "simulations")
    files = (f for p in packages for f in (root / p).rglob("*.py") if not f.name.startswith("__"))
    names = (".".join(f.relative_to(root).with_suffix("").parts) for f in files)
    return sorted(set(names) - _UNCHECKED)


# What the hook puts on every function would be compiled anew each time a function within a function is made,
# which took longer than the functions themselves. Each of these is checked when it is made the first times.
_TIMES = 10
_made: Counter[Any] = Counter()
# A check takes longer than a short function. In each process a function is checked in its first calls.
_CALLS = 500


def _first_calls(plain: Callable[..., Any], options: dict[str, Any]) -> Callable[..., Any]:
    left, checked = _CALLS, None

    @wraps(plain)
    def function(*arguments: Any, **named: Any) -> Any:
        nonlocal left, checked
        if not left:
            return plain(*arguments, **named)
        left -= 1
        checked = checked or jaxtyped(plain, **options)
        return checked(*arguments, **named)

    return function


def _jaxtyped(*arguments: Any, **options: Any) -> Callable[..., Any]:
    if arguments:
        return jaxtyped(*arguments, **options)

    def decorated(it: Any) -> Any:
        code = getattr(it, "__code__", None)
        if code is None:
            return jaxtyped(it, **options)
        if "<locals>" not in it.__qualname__:
            return _first_calls(it, options)
        _made[code] += 1
        return jaxtyped(it, **options) if _made[code] <= _TIMES else it

    return decorated


jaxtyping.jaxtyped = _jaxtyped

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
    numbers = (signal.SIGINT, signal.SIGTERM)
    before, hook = [signal.getsignal(number) for number in numbers], sys.unraisablehook
    yield numbers
    sys.unraisablehook = hook
    for number, handler in zip(numbers, before, strict=True):
        signal.signal(number, handler)
