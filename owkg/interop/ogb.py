"""OGB and TGB: candidate lists of link prediction, scored by their own models, as rank tables."""

from collections.abc import Mapping, Sequence
from typing import Any

from numpy.typing import ArrayLike

from owkg.errors import ArgumentError
from owkg.ranks import RankTable
from owkg.ranks.sampled import input_of, ranks_among, ranks_of_input


def ranks(
    positive: ArrayLike | Mapping[str, Any],
    negative: ArrayLike | Sequence[ArrayLike] | None = None,
    *,
    head: ArrayLike | None = None,
    relation: ArrayLike | None = None,
    tail: ArrayLike | None = None,
    side: str | ArrayLike = "tail",
    num_entities: int | None = None,
) -> RankTable:
    """The ranks of answers among given candidates, as the inputs of OGB's and TGB's evaluators give them.

    The candidates of a query are its negatives and its answer. The evaluators' own rank is the realistic one,
    the mean of the optimistic and the pessimistic rank. Negatives that are shared by all queries may hold the
    answer to some of them, or another true answer. Scores do not tell, so each counts as a candidate that is
    wrong: an answer among its own negatives ties with itself, which adds 1 to its pessimistic rank.

    Args:
        positive: scores of the answers, [queries]: `y_pred_pos`. Or the whole input of an evaluator, a
            dictionary of `y_pred_pos` and `y_pred_neg`, or of `t_pred_top10` and `t`, perhaps under "h,r->t".
        negative: scores of the other candidates of each, [queries, candidates]: `y_pred_neg`; a list of
            arrays of different lengths; or [candidates] that all queries share.
        head, relation, tail: ids or labels of the triples, [queries]; None: their numbers.
        side: that the candidates replace: head (`head_neg`) or tail (`tail_neg`); one for all queries, or one
            each.
        num_entities: how many candidates there are; only of `t_pred_top10`, which says the best ten alone. An
            answer that is not among them has the bounds of its rank, and the column bounded is true for it.

    Returns:
        A rank table. It is not marked as filtered: which candidates there are the data set has decided.

    Raises:
        ValueError: if shapes do not fit, a score is NaN, or the side is another one.

    Examples:
        >>> table = ranks([0.7, 0.2], [[0.1, 0.9], [0.2]])
        >>> table.frame.select("optimistic", "pessimistic", "candidates").rows()
        [(2, 2, 3), (1, 2, 2)]
    """
    named = {"head": head, "relation": relation, "tail": tail, "side": side}
    if isinstance(positive, Mapping):
        if negative is not None:
            raise ArgumentError("negative", "must be absent where `positive` is the input of an evaluator.")
        held = {name: value for name, value in named.items() if value is not None} | input_of(positive)
        return RankTable.trusted(ranks_of_input(held, num_entities=num_entities))
    if negative is None:
        raise ArgumentError("negative", "must be the scores of the other candidates, got none.")
    if num_entities is not None:
        raise ArgumentError("num_entities", "has no effect on negatives, which are the candidates.")
    return RankTable.trusted(ranks_among(positive, negative, **named))
