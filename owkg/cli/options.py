"""The options that several sub-commands share: one definition, one wording."""

import math
import tomllib
from collections.abc import Collection, Iterable
from contextlib import AbstractContextManager
from enum import StrEnum
from typing import Annotated, Any

import typer

from owkg.errors import naming

NODE_SPREAD, POPULARITY_EXPONENT = 0.2, 1.0
"""Of missing facts by node and by popularity, where none is given."""


class Format(StrEnum):
    TABLE = "table"
    JSON = "json"


class Missing(StrEnum):
    INDEPENDENT = "independent"
    NODE = "node"
    POPULARITY = "popularity"


class Prediction(StrEnum):
    CLASSIFICATION = "classification"
    SCORE = "score"


Metrics = Annotated[
    list[str],
    typer.Option(
        "--metric", help="mrr, hits@K, log-mrr, p-mrr@P, mr, or a usual alias; several with commas."
    ),
]
Strength = Annotated[
    float, typer.Option("--strength", help="P(an answer is classified positive), in [0, 1].")
]
OtherStrength = Annotated[
    float, typer.Option("--other-strength", help="Strength of the second model, in [0, 1].")
]
Sparsity = Annotated[
    float, typer.Option("--sparsity", help="P(an answer is missing from the test set), in (0, 1).")
]
DESIGN_HELP = (
    "How the judged candidates were chosen: complete (a random sample of queries, all candidates judged), "
    "sampled-pool, sampled-budget (pooled on a random sample of queries), pool, budget, sheet or unknown. "
    "Default: as owkg pool and owkg audit wrote it; a sheet is a sheet, other files are unknown. Only "
    "complete gives more than a lower bound."
)
DesignName = Annotated[str | None, typer.Option("--design", metavar="DESIGN", help=DESIGN_HELP)]
Seed = Annotated[int, typer.Option(help="Equal seeds give equal results.", min=0, max=2**32 - 1)]
NumAnswers = Annotated[int, typer.Option("--num-answers", help="Full-test answers of a query, at least 1.")]
AnswerHistogram = Annotated[
    str,
    typer.Option(
        "--num-answers",
        help="Full-test answers of a query, at least 1; or a histogram over queries, "
        "ANSWERS:QUERIES,ANSWERS:QUERIES,... such as 12:300,43:200.",
    ),
]
NumEntities = Annotated[
    int, typer.Option("--num-entities", help="Candidates before filtering, above --num-answers.")
]
Correlation = Annotated[
    float, typer.Option("--correlation", help='Correlation of "missing" and "classified positive".')
]
OtherCorrelation = Annotated[
    float | None, typer.Option("--other-correlation", help="Of the second model; --correlation when absent.")
]
MissingFacts = Annotated[Missing, typer.Option("--missing", help="How facts come to be missing.")]
NodeSpread = Annotated[
    float, typer.Option("--node-spread", help="Spread of the entities' probabilities under --missing node.")
]
PopularityExponent = Annotated[
    float,
    typer.Option(
        "--popularity-exponent",
        help="How fast the odds of missing rise with the popularity rank under --missing popularity.",
    ),
]
Predictions = Annotated[Prediction, typer.Option("--prediction", help="How the model orders the candidates.")]
OutputFormat = Annotated[Format, typer.Option("--format", help="A table to read, or JSON.")]


def histogram(text: str) -> tuple[list[int] | int, list[float] | None]:
    """(num_answers, weights) of `--num-answers`: a number and None, or two lists."""
    try:
        if ":" not in text:
            return int(text), None
        pairs = [part.split(":") for part in text.split(",")]
        answers, queries = zip(*((int(a), float(q)) for a, q in pairs), strict=True)
    except ValueError:
        raise ValueError(
            f"`num_answers` must be a whole number or ANSWERS:QUERIES,..., got {text!r}."
        ) from None
    if len(set(answers)) < len(answers):
        raise ValueError(f"`num_answers` must not name a number of answers twice, got {text!r}.")
    if not all(0 <= q < math.inf for q in queries) or max(queries) == 0:
        raise ValueError(f"`num_answers` must count queries from 0 up, and some, got {text!r}.")
    return list(answers), list(queries)


def metrics_named(names: list[str]):
    """The metrics that `--metric` names."""
    from owkg.rank_weights.registry import checked_metric

    return [checked_metric(part.strip()) for name in names for part in name.split(",")]


def missing_model(name: Missing, node_spread: float, popularity_exponent: float):
    """The missing-fact model that the options describe."""
    from owkg.openworld import Independent, NodeBased, PopularityBased

    for one, option, value, default in (
        (Missing.NODE, "node_spread", node_spread, NODE_SPREAD),
        (Missing.POPULARITY, "popularity_exponent", popularity_exponent, POPULARITY_EXPONENT),
    ):
        if name is not one and value != default:
            raise ValueError(f"`{option}` has no effect without --missing {one.value}, got {value:g}.")
    if name is Missing.NODE:
        return NodeBased(node_spread)
    if name is Missing.POPULARITY:
        return PopularityBased(popularity_exponent)
    return Independent()


def shown_missing(name: Missing, node_spread: float, popularity_exponent: float) -> dict[str, str | float]:
    """What the output says of the missing-fact model: its name, and its parameter if it has one."""
    parameter = {
        Missing.NODE: {"node_spread": node_spread},
        Missing.POPULARITY: {"popularity_exponent": popularity_exponent},
    }
    return {"missing": name.value} | parameter.get(name, {})


def prediction_model(name: Prediction):
    """The prediction model that the option names."""
    from owkg.openworld import Classification, Score

    return Score() if name is Prediction.SCORE else Classification()


def named_values(pairs: Iterable[str], *, taken: Collection[str]) -> dict[str, Any]:
    """The NAME=VALUE of `--option` by name, values as TOML or else text; none of the names that are taken."""
    values: dict[str, Any] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not (name and equals and value):
            raise ValueError(f"`option` must be NAME=VALUE, got {pair!r}.")
        if name in values or name in taken:
            raise ValueError(f"`option` must give what nothing else gives, got {name} again.")
        try:
            values[name] = tomllib.loads(f"value = {value}")["value"]
        except tomllib.TOMLDecodeError:
            values[name] = value
    return values


def refuse_given(context: typer.Context, names: Iterable[str], why: str) -> None:
    """Raises ValueError if one of the options was given: it has no effect, `why`."""
    for name in names:
        source = context.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE":
            raise ValueError(f"`{name}` has no effect {why}.")


def naming_options(flags: Collection[str]) -> AbstractContextManager[None]:
    """Errors name what is set by `--option NAME=VALUE` so, and only `flags` as options of their own."""
    return naming(lambda argument: f"`{argument}`" if argument in flags else f"--option {argument}")
