"""OGB and TGB: candidate lists for link prediction, scored by their own models, as rank tables."""

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
    """Ranks of answers among given candidates, from the inputs of OGB's and TGB's evaluators.

    The candidates of a query are its negatives and its answer. The evaluators themselves use the realistic
    rank, the mean of the optimistic and the pessimistic rank. If all queries share the negatives, these may
    contain the answer to some query, or another true answer. The scores do not show this, so owkg counts each
    negative as a wrong candidate: an answer among its own negatives ties with itself, which adds 1 to its
    pessimistic rank.

    Args:
        positive: scores of the answers, [queries] (`y_pred_pos`); or the whole input of an evaluator, a
            dictionary of `y_pred_pos` and `y_pred_neg`, or of `t_pred_top10` and `t`, optionally under
            "h,r->t".
        negative: scores of the other candidates (`y_pred_neg`): [queries, candidates], a list of arrays of
            different lengths, or [candidates] if all queries share them. Leave it out if `positive` is the
            input of an evaluator.
        head, relation, tail: ids or labels of the triples, [queries]. Default: their numbers.
        side: position that the candidates replace: "head" (`head_neg`) or "tail" (`tail_neg`); one for all
            queries, or one for each. Default "tail".
        num_entities: number of candidates, only for `t_pred_top10`, which has only the ten best. If an
            answer is not among the ten, its ranks are the bounds of its rank, and the column `bounded` is
            true.

    Returns:
        A rank table. It is not marked as filtered, because the data set has chosen the candidates.

    Raises:
        ValueError: if shapes do not fit, a score is NaN, or the side is neither head nor tail.

    Examples:
        >>> table = ranks([0.7, 0.2], [[0.1, 0.9], [0.2]])
        >>> table.frame.select("optimistic", "pessimistic", "candidates").rows()
        [(2, 2, 3), (1, 2, 2)]
    """
    named = {"head": head, "relation": relation, "tail": tail, "side": side}
    if isinstance(positive, Mapping):
        if negative is not None:
            raise ArgumentError("negative", "must be left out if `positive` is the input of an evaluator.")
        held = {name: value for name, value in named.items() if value is not None} | input_of(positive)
        return RankTable.trusted(ranks_of_input(held, num_entities=num_entities))
    if negative is None:
        raise ArgumentError("negative", "must be the scores of the other candidates, got none.")
    if num_entities is not None:
        raise ArgumentError("num_entities", "must be left out if `negative` gives the candidates.")
    return RankTable.trusted(ranks_among(positive, negative, **named))
