"""Checks of a model's options by name; each stores a plain Python value in the field."""

import numpy as np

from owkg import checks
from owkg.errors import ArgumentError


def whole_numbers(config: object, *names: str, low: int = 1) -> None:
    """Requires fields to be whole numbers of at least `low`."""
    for name in names:
        _put(config, name, checks.scalar(name, checks.integer(name, getattr(config, name), low)))


def even(config: object, *names: str) -> None:
    """Requires fields, already whole numbers, to be even."""
    for name in names:
        if (value := getattr(config, name)) % 2:
            raise ArgumentError(name, f"must be even, got {value}.")


def divisible(config: object, name: str, by: str) -> None:
    """Requires field `name` to be a multiple of field `by`."""
    value, parts = getattr(config, name), getattr(config, by)
    if value % parts:
        raise ArgumentError(name, f"must be a multiple of `{by}`, {parts}, got {value}.")


def positive(config: object, *names: str) -> None:
    """Requires fields to be finite numbers above 0."""
    for name in names:
        value = checks.real(name, getattr(config, name), 0.0, np.inf, closed=False)
        _put(config, name, checks.scalar(name, value))


def nonnegative(config: object, *names: str) -> None:
    """Requires fields to be finite numbers of at least 0."""
    for name in names:
        _put(config, name, checks.scalar(name, checks.real(name, getattr(config, name), 0.0, np.inf)))


def share(config: object, *names: str) -> None:
    """Requires fields to be numbers in [0, 1), such as rates of dropout."""
    for name in names:
        value = checks.scalar(name, checks.real(name, getattr(config, name), 0.0, 1.0))
        if value == 1:
            raise ArgumentError(name, f"must be in [0, 1), got {value!r}.")
        _put(config, name, value)


def one_of(config: object, name: str, *choices: object) -> None:
    """Requires field `name` to be one of `choices`, and of its type."""
    value = getattr(config, name)
    if not any(type(value) is type(choice) and value == choice for choice in choices):
        listed = " or ".join(map(repr, choices))
        raise ArgumentError(name, f"must be {listed}, got {value!r}.")


def flags(config: object, *names: str) -> None:
    """Requires fields to be True or False."""
    for name in names:
        one_of(config, name, True, False)


def only_reciprocal(config: object, model: str) -> None:
    """Requires field `reciprocal` to be True, because `model` has no form for head queries."""
    flags(config, "reciprocal")
    if not getattr(config, "reciprocal"):  # noqa: B009
        raise ArgumentError(
            "reciprocal", f"must be True for {model}, which predicts heads by inverse relations, got False."
        )


def _put(config: object, name: str, value: object) -> None:
    object.__setattr__(config, name, value)  # the dataclass is frozen otherwise
