"""PyKEEN's metrics of a few small sets of ranks, recorded for the tests of `owkg.metrics`.

Needs PyKEEN and NumPy only, not owkg, so that it runs in its own environment:

    python -m venv pykeen-env
    pykeen-env/bin/pip install pykeen==1.11.1
    pykeen-env/bin/python benchmarks/record_pykeen.py --out tests/metrics/data/pykeen.json

The ranks come from a fixed seed; PyKEEN gets them as float64, and the counts of candidates as int64. A set
has one row for each ranking task, and `metrics[side][tie rule][PyKEEN's key]` with the value and the
expectation and variance under random ranking (null if PyKEEN has no closed form).

PyKEEN 1.11.1 differs from its users' expectations as follows:

- The keys of z_hits_at_k and adjusted_hits_at_k do not contain k, so that two k overwrite each other in its
  results; here the letter is replaced by the number.
- Index, z and expectation-normalised metrics are recorded under every tie rule. Its keys accept only the
  realistic rule for them (`realistic_only` lists them), though its evaluator computes them under all.
- Its evaluator computes realistic ranks in float32 and so sums them in float32; here they are float64.
- z metrics whose variance is 0 and index metrics whose expectation is 1 are divided by 1e-12 instead of
  raising an error: 0 for the only value that is possible.
- The expectation of an index metric is set to 0, and the expectation of a z metric to 0 with variance 1, even
  if every task has one candidate and the variance is 0. The variance of an index metric exists, although its
  attribute `closed_variance` says that it does not.
- The median absolute deviation is scaled to a standard deviation (times 1.4826) without weights, and not
  scaled with weights. Integer weights raise a TypeError there and in the weighted median.
- The weighted median is the smallest rank whose running weight reaches 1/2, or the mean of it and the next
  rank if 1/2 is hit exactly (in floating point, so that scaling the weights may change it).
- Standard deviation, variance and count accept weights but ignore them; the first two divide by n.
- The variance of the geometric mean rank is a difference of close products: it loses 4e-11, relative, with 60
  tasks, and more with more tasks.
- int32 counts of 46,341 and more overflow in the variance of the mean rank. Nothing is checked: rank 0 gives
  an infinite MRR, a rank above the candidates an AMRI of -21, a NaN rank a miss at k.
"""

import argparse
import json
import math
import platform
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

SEED = 20220301
HITS = (1, 3, 5, 10)
SIDES = ("head", "tail", "both")
TIES = ("optimistic", "pessimistic", "realistic")
LIMIT = 300_000  # largest size of the file in bytes


def drawn(rng: np.random.Generator, name: str, candidates: np.ndarray, weight: np.ndarray | None) -> dict:
    """One set: a side, a range of tied ranks and, if given, a weight for each count of candidates."""
    # Good models rank near the top: the better rank is log-uniform, and a third of the tasks is tied.
    optimistic = np.exp(rng.uniform(0, np.log(candidates + 1))).astype(np.int64).clip(1, candidates)
    ties = rng.integers(1, 9, candidates.size) * (rng.random(candidates.size) < 1 / 3)
    return {
        "name": name,
        "side": np.where(rng.random(candidates.size) < 0.5, "head", "tail"),
        "optimistic": optimistic,
        "pessimistic": np.minimum(optimistic + ties, candidates),
        "candidates": candidates,
        "weight": weight,
    }


def rank_sets() -> Iterator[dict]:
    """Yields the sets, all from one seed."""
    rng = np.random.default_rng(SEED)
    yield drawn(rng, "constant", np.full(40, 100), None)
    # Both extremes occur: one candidate, which leaves no choice, and sixty.
    yield drawn(rng, "varied", np.concatenate([[1, 60], rng.integers(1, 61, 58)]), None)
    yield drawn(rng, "large", 14_541 - rng.integers(0, 300, 60), None)
    yield drawn(rng, "single", np.array([50]), None)
    candidates = rng.integers(2, 200, 50)
    yield drawn(rng, "weighted", candidates, rng.uniform(0.1, 3, 50).round(3))


def metrics() -> dict[str, Any]:
    """PyKEEN's rank metrics by key; metrics at k once for each k of `HITS`."""
    from pykeen.metrics.ranking import HITS_METRICS, rank_based_metric_resolver  # pyright: ignore

    found = {}
    for cls in rank_based_metric_resolver:
        if cls in HITS_METRICS:
            for k in HITS:
                made = cls(k=k)
                found[made.key if made.key.endswith(str(k)) else made.key.removesuffix("k") + str(k)] = made
        else:
            made = cls()
            found[made.key] = made
    return dict(sorted(found.items()))


def closed(call: Any, candidates: np.ndarray, weight: np.ndarray | None) -> float | None:
    """Closed form of `call`, or None if it has none."""
    from pykeen.metrics.ranking import NoClosedFormError  # pyright: ignore

    try:
        return float(call(num_candidates=candidates, weights=weight))
    except NoClosedFormError:
        return None


def measured(ranks: dict, found: dict[str, Any]) -> dict:
    """side -> tie rule -> key -> value, expectation, variance; sides without a task are left out."""
    by_tie = {
        "optimistic": ranks["optimistic"].astype(np.float64),
        "pessimistic": ranks["pessimistic"].astype(np.float64),
        "realistic": (ranks["optimistic"] + ranks["pessimistic"]) / 2,
    }
    table = {}
    for side in SIDES:
        rows = np.ones(ranks["side"].size, bool) if side == "both" else ranks["side"] == side
        if not rows.any():
            continue
        candidates = ranks["candidates"][rows].astype(np.int64)
        weight = None if ranks["weight"] is None else ranks["weight"][rows]
        chance = {
            key: {
                "expectation": closed(metric.expected_value, candidates, weight),
                "variance": closed(metric.variance, candidates, weight),
            }
            for key, metric in found.items()
        }
        table[side] = {
            ties: {
                key: {
                    "value": float(
                        metric(ranks=by_tie[ties][rows], num_candidates=candidates, weights=weight)
                    ),
                    **chance[key],
                }
                for key, metric in found.items()
            }
            for ties in TIES
        }
    return table


def plain(value: Any) -> Any:
    """`value` with arrays as lists."""
    return value.tolist() if isinstance(value, np.ndarray) else value


def check_finite(value: Any, where: str = "") -> None:
    """Raises ValueError if a recorded number is not finite."""
    if isinstance(value, dict):
        for key, inner in value.items():
            check_finite(inner, f"{where}/{key}")
    elif isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"PyKEEN gives {value} for {where}.")


def scorers() -> dict[str, dict[str, float]]:
    """Realistic metrics of scorers without information, computed from scores: 5 queries of 14 candidates."""
    import torch  # pyright: ignore
    from pykeen.evaluation.ranks import Ranks  # pyright: ignore

    found = {}
    for name, score in (("nan", math.nan), ("constant", 0.0)):
        scores = torch.full((5, 14), score)
        ranks = Ranks.from_scores(true_score=scores[:, :1], all_scores=scores)
        realistic, counts = ranks.realistic.numpy(), ranks.number_of_options.numpy()
        found[name] = {
            key: float(metric(ranks=realistic, num_candidates=counts))
            for key, metric in metrics().items()
            if key in ("inverse_harmonic_mean_rank", "hits_at_10")
            or (key == "adjusted_inverse_harmonic_mean_rank" and name == "constant")
        }
    return found


def main() -> int:
    """Records and writes the file; the exit code is 2 if that fails."""
    parser = argparse.ArgumentParser(description="Records PyKEEN's rank metrics on small sets of ranks.")
    parser.add_argument("--out", type=Path, default=Path("tests/metrics/data/pykeen.json"))
    out = parser.parse_args().out
    try:
        import pykeen.version  # pyright: ignore
        import scipy
    except ImportError as error:
        print(
            f"record_pykeen.py: error: PyKEEN cannot be imported ({error}); "
            "install it into an environment of its own: pip install pykeen==1.11.1",
            file=sys.stderr,
        )
        return 2
    if not out.parent.is_dir():
        print(
            f"record_pykeen.py: error: {out.parent} must be a folder that can be written to.", file=sys.stderr
        )
        return 2
    found = metrics()
    sets = []
    for ranks in rank_sets():
        table = measured(ranks, found)
        check_finite(table, ranks["name"])
        sets.append({**{key: plain(value) for key, value in ranks.items()}, "metrics": table})
    record = {
        "versions": {
            "pykeen": pykeen.version.get_version(),
            "numpy": np.__version__,
            "scipy": scipy.__version__,
            "python": platform.python_version(),
        },
        "made": f"by benchmarks/record_pykeen.py, seed {SEED}; its docstring lists PyKEEN's particularities",
        "realistic_only": [
            key for key, m in found.items() if tuple(m.supported_rank_types) == ("realistic",)
        ],
        "scorers": scorers(),
        "sets": sets,
    }
    text = json.dumps(record, separators=(",", ":"), allow_nan=False).replace('{"name"', '\n{"name"') + "\n"
    if len(text) > LIMIT:
        print(f"record_pykeen.py: error: {len(text):,} bytes are more than {LIMIT:,}.", file=sys.stderr)
        return 2
    aside = out.with_name(f".{out.name}.tmp")
    aside.write_text(text, encoding="utf-8")
    aside.replace(out)
    print(
        f"{out}: {len(sets)} sets, {len(found)} metrics, {len(text):,} bytes, "
        f"PyKEEN {record['versions']['pykeen']}"
    )
    for name, values in record["scorers"].items():
        print(f"{name} scorer of 14 candidates, realistic ranks: {values}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
