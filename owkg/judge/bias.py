"""What every system gains from having been pooled itself."""

from typing import Any

import polars as pl

from owkg import checks
from owkg.judge.frames import RUN, checked
from owkg.judge.pools import judged_share, leave_one_out, unique_contributions
from owkg.judge.runs import top
from owkg.metrics import average_precision, bpref, judge

_COLUMNS = (
    *("model", "judged", "pooled", "unique", "unique_relevant"),
    *("map", "map_without", "bpref", "bpref_without"),
)


def pool_bias(run: Any, qrels: Any, depth: Any, *, kept: Any = None) -> pl.DataFrame:
    """Every system by the judgements of a pool, and by those that there would be had it not been pooled.

    What a system alone brought into the pool is judged no more then, neither in its list nor among the
    answers that there are to find, so its measures may fall or rise. Only the first `depth` answers of a list
    are looked at.

    Args:
        run: columns model, question, side, entity, relation, answer, score; two systems at least.
        qrels: judgements of every question of the run.
        depth: of the pool.
        kept: judgements that do not come from the pool, such as those of the test set. None: none.

    Returns:
        A row a system, by name: model; judged, Judged@depth (`owkg.judge.judged_share`; a shorter list
        counts as if the rest were not judged); pooled, unique and unique_relevant
        (`owkg.judge.unique_contributions`); map, map_without, bpref, bpref_without: means over the judged
        questions.

    Raises:
        ValueError: if a frame is malformed, there is one system only, or the run answers a question that has
            no judgement.

    References:
        Zobel (SIGIR 1998), section 4.
    """
    deep = checks.scalar("depth", checks.integer("depth", depth, 1))
    lists = top(checked("run", run, RUN), deep)
    systems = lists["model"].unique().sort().to_list()
    if len(systems) < 2:
        raise ValueError(f"`run` must hold two systems at least, got {len(systems)}.")
    alone = unique_contributions(lists, qrels, deep, kept=kept)
    found = judged_share(lists, qrels, deep).join(alone, on="model", maintain_order="left")
    of = {name: lists.filter(model=name) for name in systems}
    own = pl.DataFrame([{"model": name} | _measured(one, qrels) for name, one in of.items()])
    reduced = leave_one_out(lists, qrels, deep, kept=kept)
    without = pl.DataFrame([{"model": name} | _measured(of[name], left) for name, left in reduced])
    found = found.join(own, on="model", maintain_order="left")
    found = found.join(without, on="model", maintain_order="left", suffix="_without")
    return found.select(*_COLUMNS)


def _measured(run: pl.DataFrame, qrels: pl.DataFrame) -> dict[str, float]:
    judged = judge(run, qrels)
    return {"map": float(average_precision(judged).mean()), "bpref": float(bpref(judged).mean())}
