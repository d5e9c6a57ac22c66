"""Permanent random numbers: one for each unit, equal in every draw and on every machine."""

import hashlib

import numpy as np
import polars as pl
from jaxtyping import Float

from owkg import checks


def permanent_numbers(seed: int, *columns: pl.Series) -> Float[np.ndarray, "units"]:
    """Numbers in [0, 1), one for each unit, that depend only on the seed and on the texts of the unit.

    The units with the smallest numbers are a random sample, and a larger sample contains every smaller one.

    Args:
        seed: seed of the draw; another seed gives other numbers.
        columns: texts that identify a unit, such as query and answer.

    Raises:
        ValueError: if `seed` is not a whole number of at least 0.

    Examples:
        >>> permanent_numbers(7, pl.Series(["a|r|?", "b|r|?"])).round(4).tolist()
        [0.0663, 0.9377]

    References:
        Ohlsson (Cox et al., Business Survey Methods, 1995), "Coordination of samples using permanent random
        numbers".
    """
    state = np.full(len(columns[0]), _hashed(str(checks.seed("seed", seed))), np.uint64)
    for column in columns:
        texts = column.unique()
        table = pl.DataFrame(
            {"text": texts, "hash": np.array([_hashed(text) for text in texts], np.uint64)},
            schema_overrides={"text": column.dtype},
        )
        hashes = column.to_frame("text").join(table, on="text", how="left", maintain_order="left")["hash"]
        state = _mixed(state * np.uint64(0x9E3779B97F4A7C15) ^ hashes.to_numpy())
    return (state >> np.uint64(11)).astype(np.float64) * 2.0**-53


def _hashed(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")


def _mixed(state: np.ndarray) -> np.ndarray:
    """Finaliser of splitmix64."""
    state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return state ^ (state >> np.uint64(31))
