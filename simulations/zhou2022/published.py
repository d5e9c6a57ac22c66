"""Files of the published study of judged link prediction (Zhou et al. 2022), and what the paper prints.

Zhou, Chen, He, Ye, Sun (SIGIR 2022), "Re-thinking Knowledge Graph Completion Evaluation from an Information
Retrieval Perspective". FB-Test-O is the test set of FB15k-237, FB-Test-S is a sample of it, and FB-Test-S-C
is this sample completed: the answers that six systems list were pooled and judged (section 3.1), and 13
systems are ranked (section 4.1). A side is the side that a query asks for.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import polars as pl

from owkg.files.lines import read_lines

O, S, SC, WN = "FB-Test-O", "FB-Test-S", "FB-Test-S-C", "WN18RR"

POOLED = ("transe", "rotate", "complex", "distmult", "rescal", "conve")
"""Systems whose answers were pooled (section 3.1)."""

PRINTED_POOL = {"pooled triples": 21_469, "entities": 7_087, "relations": 151, "positives at depth 2": 287}
"""Printed counts of section 3."""

PRINTED_TAU = {(O, S): 0.7949, (S, SC): -0.2308, (S, "depth 2"): 0.359}
"""Kendall's tau of the rankings by micro MRR, to the printed digits."""

CATEGORIES = ("one_to_one", "one_to_many", "many_to_one", "many_to_many")

_PREFIX = "fb15k-237-"
_TRIPLE = ("head", "relation", "tail")
_CELL_METRICS = (*(f"micro_hits@{k}" for k in range(1, 11)), "micro_mr", "micro_mrr")


class Study(NamedTuple):
    """The published files.

    Attributes:
        evaluation: columns test_set, system, and each metric.
        cells: columns test_set, system, side, category, and each micro metric, of FB-Test-S and FB-Test-S-C.
        relations: columns test_set, system, relation, and each micro metric, of all test sets except WN18RR.
        sparse: columns system, and each micro metric of FB-Test-S-C by the shares of FB-Test-S (Table 4).
        depths: columns depth, system, and each metric, of the labels from pooling to that depth.
        p_values: columns test_set, first, second, and each metric: two-sided p-values of all pairs, each
            once.
        triples: by test set, columns head, relation, tail.
        pool: columns head, relation, tail, depth (at which it was pooled), positive, filtered (by a rule, not
            judged by hand).
        categories: columns relation, category.
        metrics: names of the columns of metrics.
    """

    evaluation: pl.DataFrame
    cells: pl.DataFrame
    relations: pl.DataFrame
    sparse: pl.DataFrame
    depths: pl.DataFrame
    p_values: pl.DataFrame
    triples: dict[str, pl.DataFrame]
    pool: pl.DataFrame
    categories: pl.DataFrame
    metrics: tuple[str, ...]


def read_study(folder: Path) -> Study:
    """Reads the published files.

    Args:
        folder: folder with kgc_sparsity, fb15k237 and wn18rr.

    Raises:
        ValueError: if a file is missing or malformed; the message names the file and, if there is one, the
            line.
    """
    base, results = folder / "kgc_sparsity", folder / "kgc_sparsity" / "results"
    files = {O: "fb_test_o", S: "fb_test_s", SC: "fb_test_s_c", WN: "wn18rr"}
    parts, relations, metrics, systems = [], [], (), []
    for name, stem in files.items():
        path = results / f"{stem}_evaluation.csv"
        table, found = _numbers(path, ("System",))
        metrics, systems = metrics or found, systems or sorted(table["System"])
        _complete(path, table, {"System": _systems(systems, name)}, metrics)
        parts.append(_of(table, name))
        if name != WN:
            path = results / f"{stem}_per_relation.csv.gz"
            table, _ = _numbers(path, ("System", "Relation"))
            rows = {"System": systems, "Relation": sorted(set(table["Relation"]))}
            _complete(path, table, rows, _CELL_METRICS)
            relations.append(_of(table, name))
    path = results / "fb_test_s_c_sample_relation_distribution.csv"
    sparse, _ = _numbers(path, ("System",))
    _complete(path, sparse, {"System": systems}, _CELL_METRICS)
    path = results / "fb_test_s_c_pooling_depth.csv.gz"
    depths, _ = _numbers(path, ("System",))
    depths = depths.with_columns(pl.col("Depth").cast(pl.Int64)) if "Depth" in depths.columns else depths
    _complete(path, depths, {"Depth": list(range(11)), "System": systems}, metrics)
    sides = {"QuestionType": ["head", "tail"], "RelationType": list(CATEGORIES), "System": systems}
    cells = []
    for name in (S, SC):
        path = results / f"{files[name]}_per_relation_type.csv"
        table, _ = _numbers(path, (*sides,))
        _complete(path, table, sides, _CELL_METRICS)
        cells.append(_of(table, name))
    return Study(
        evaluation=pl.concat(parts).select("test_set", "system", *metrics),
        cells=pl.concat(cells).rename({"QuestionType": "side", "RelationType": "category"}),
        relations=pl.concat(relations).rename({"Relation": "relation"}),
        sparse=_named(sparse),
        depths=_named(depths).rename({"Depth": "depth"}).select("depth", "system", *metrics),
        p_values=pl.concat(
            _pairs(results / f"{files[name]}_discriminative_power.csv.gz", name, systems, metrics)
            for name in (O, WN, SC)
        ),
        triples={
            O: _triples(folder / "fb15k237" / "test.txt.gz").select(_TRIPLE),
            S: _triples(base / "fb_test_s.txt").select(_TRIPLE),
            SC: _triples(base / "fb_test_s_c.txt").select(_TRIPLE),
            WN: _triples(folder / "wn18rr" / "test.txt.gz").select(_TRIPLE),
        },
        pool=_pool(base),
        categories=_categories(base / "relation_category"),
        metrics=metrics,
    )


def _numbers(path: Path, names: Sequence[str]) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """A table whose columns except `names` are finite numbers, and the names of these columns."""
    table = _text(path, ",")
    _has(path, table, names)
    columns = tuple(name for name in table.columns if name not in names)
    numbers = table.with_columns(pl.col(columns).cast(pl.Float64, strict=False))
    for name in columns:
        good = numbers[name].is_finite().fill_null(False)
        if not good.all():
            line = int(good.arg_min() or 0)
            raise ValueError(
                f"{path}, line {line + 2}: {table[name][line]!r} in the column {name} is not a number."
            )
    return numbers, columns


def _has(path: Path, table: pl.DataFrame, names: Sequence[str]) -> None:
    if missing := [name for name in names if name not in table.columns]:
        raise ValueError(f"{path}: must have the column {missing[0]}.")


def _complete(path: Path, table: pl.DataFrame, keys: dict[str, list], metrics: Sequence[str]) -> None:
    """Raises an error unless `table` has all metrics, and every combination of the values of `keys` once."""
    _has(path, table, (*keys, *metrics))
    wanted = pl.DataFrame({name: [values] for name, values in keys.items()})
    for name in keys:
        wanted = wanted.explode(name)
    wanted = wanted.with_columns(pl.col(name).cast(table[name].dtype) for name in keys)
    lacking = wanted.join(table, on=list(keys), how="anti")
    if len(lacking):
        raise ValueError(f"{path}: must have a row of {', '.join(map(str, lacking.row(0)))}.")
    seen = table.select(*keys).with_row_index("line", offset=2)
    known = seen.join(wanted.with_columns(known=True), on=list(keys), how="left", maintain_order="left")
    bad = known.filter(~pl.struct(*keys).is_first_distinct() | pl.col("known").is_null())
    if len(bad):
        row = ", ".join(map(str, bad.select(*keys).row(0)))
        raise ValueError(f"{path}, line {bad['line'][0]}: {row} must be a known row that appears once.")


def _of(table: pl.DataFrame, test_set: str) -> pl.DataFrame:
    return _named(table, test_set).with_columns(test_set=pl.lit(test_set))


def _named(table: pl.DataFrame, test_set: str = SC) -> pl.DataFrame:
    return table.with_columns(system=pl.col("System").str.strip_prefix(_prefix(test_set))).drop("System")


def _prefix(test_set: str) -> str:
    return "wn18rr-" if test_set == WN else _PREFIX


def _systems(systems: Sequence[str], test_set: str) -> list[str]:
    """Names of the systems in the files of a test set."""
    return [name.replace(_PREFIX, _prefix(test_set)) for name in systems]


def _pairs(path: Path, test_set: str, systems: Sequence[str], metrics: Sequence[str]) -> pl.DataFrame:
    """The published p-values, each pair once; the files have both orders."""
    table, columns = _numbers(path, ("SystemA", "SystemB"))
    _has(path, table, metrics)
    for name in columns:
        good = table[name].is_between(0, 1)
        if not good.all():
            line = int(good.arg_min() or 0)
            raise ValueError(f"{path}, line {line + 2}: {table[name][line]} is not a p-value.")
    ordered = table.with_columns(
        first=pl.min_horizontal("SystemA", "SystemB"), second=pl.max_horizontal("SystemA", "SystemB")
    )
    once = ordered.unique(["first", "second", *metrics], maintain_order=True)
    systems = _systems(systems, test_set)
    wanted = [(a, b) for i, a in enumerate(systems) for b in systems[i + 1 :]]
    if sorted(once.select("first", "second").rows()) != wanted:
        raise ValueError(f"{path}: must have one p-value for each of {len(wanted)} pairs.")
    short = (pl.col(name).str.strip_prefix(_prefix(test_set)) for name in ("first", "second"))
    return once.select(pl.lit(test_set).alias("test_set"), *short, *metrics)


def _pool(base: Path) -> pl.DataFrame:
    path = base / "pooling_depth.txt.gz"
    pool = _triples(path, "depth")
    depth = pool["depth"].cast(pl.Int64, strict=False)
    good = depth.is_between(1, 10).fill_null(False)
    if not good.all():
        line = int(good.arg_min() or 0)
        raise ValueError(f"{path}, line {line + 1}: {pool['depth'][line]!r} is not a depth from 1 to 10.")
    labels = {}
    for stem in ("annotations", "filtered"):
        labels[stem] = _triples(base / f"{stem}.txt.gz", "label")
        good = labels[stem]["label"].is_in(["Y", "N"])
        if not good.all():
            line = int(good.arg_min() or 0)
            shown = labels[stem]["label"][line]
            raise ValueError(f"{base / stem}.txt.gz, line {line + 1}: {shown!r} is neither Y nor N.")
    judged = pool.with_columns(depth=depth).join(
        labels["annotations"], on=_TRIPLE, how="left", maintain_order="left"
    )
    if judged["label"].null_count():
        raise ValueError(
            f"{base / 'annotations.txt.gz'}: {judged['label'].null_count()} pooled triples are missing."
        )
    ruled = labels["filtered"].select(_TRIPLE).with_columns(filtered=True)
    return judged.join(ruled, on=_TRIPLE, how="left", maintain_order="left").select(
        *_TRIPLE, "depth", pl.col("label") == "Y", pl.col("filtered").fill_null(False)
    ).rename({"label": "positive"})  # fmt: skip


def _categories(folder: Path) -> pl.DataFrame:
    parts = [
        _text(folder / f"{name}.txt", "\t", ("relation",)).with_columns(category=pl.lit(name))
        for name in CATEGORIES
    ]
    table = pl.concat(parts)
    if table["relation"].is_duplicated().any():
        twice = table["relation"].filter(table["relation"].is_duplicated())[0]
        raise ValueError(f"{folder}: {twice} has two categories.")
    return table


def _triples(path: Path, *more: str) -> pl.DataFrame:
    """Tab-separated triples, each once, followed by the columns `more`."""
    table = _text(path, "\t", (*_TRIPLE, *more))
    if (twice := table.select(_TRIPLE).is_duplicated()).any():
        line = len(table) - int(twice.reverse().arg_max() or 0)
        raise ValueError(f"{path}, line {line}: must not repeat a triple.")
    return table


def _text(path: Path, separator: str, names: Sequence[str] | None = None) -> pl.DataFrame:
    """Fields of a file as text; the first line has the names of the columns unless they are given."""
    if not path.is_file():
        raise ValueError(f"{path}: no such file.")
    rows = _rows(path, separator)
    header = list(names) if names else next(rows, (0, []))[1]
    if len(set(header)) < len(header):
        raise ValueError(f"{path}, line 1: must not have two columns of one name.")
    columns: list[tuple[str, ...]] = []
    for line, fields in rows:
        if len(fields) != len(header) or not all(fields):
            raise ValueError(f"{path}, line {line}: {len(fields)} fields, not {len(header)}, or empty ones.")
        columns.append(fields)
    if not columns:
        raise ValueError(f"{path}: must have at least one row, got none.")
    return pl.DataFrame(columns, schema=dict.fromkeys(header, pl.String), orient="row")


def _rows(path: Path, separator: str) -> Iterator[tuple[int, tuple[str, ...]]]:
    for line, text in enumerate(read_lines(path), start=1):
        yield line, tuple(text.rstrip("\r").split(separator))
