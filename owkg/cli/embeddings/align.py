"""`owkg align`: entity alignment trained or evaluated, its pairs ranked in both directions."""

from pathlib import Path
from typing import Annotated, Any

import typer

from owkg.cli.evaluate_output import values_by_side
from owkg.cli.inputs import check_readable, check_writable, noted
from owkg.cli.options import Format, OutputFormat, Seed
from owkg.cli.output import show_metrics
from owkg.terminal.progress import progress

_METRICS = ("hits@1", "hits@10", "mrr", "mr", "amri")


def align(
    folder: Path,
    *,
    out: Path,
    model: str = "gcn-align",
    embeddings: Path | None = None,
    matrix: Path | None = None,
    similarity: str = "l1",
    train_share: float | None = None,
    seed: Seed = 0,
    fold: Annotated[int | None, typer.Option(min=1)] = None,
    dim: Annotated[int, typer.Option(min=1)] = 200,
    steps: Annotated[int, typer.Option(min=0)] = 100,
    learning_rate: float = 0.05,
    margin: float = 3.0,
    num_negatives: Annotated[int, typer.Option(min=1)] = 5,
    many_to_many: bool = False,
    assign: bool = False,
    name: str | None = None,
    save_embeddings: Path | None = None,
    form: OutputFormat = Format.TABLE,
) -> None:
    """Ranks the entities of a test alignment among those of its pairs, in both directions.

    DATA holds ent_ids_1, ent_ids_2, triples_1, triples_2 and ref_ent_ids (DBP15k), or rel_triples_1,
    rel_triples_2, ent_links and folds such as 721_5fold (OpenEA), perhaps packed (.gz). GCN-Align's
    structural encoder is trained on the training pairs; or embeddings and similarities of others are ranked.
    The rank table has the relation sameAs: owkg metrics, compare and stability take it as any other.

    Args:
        folder (DATA): Two graphs and their pairs, in the layout of DBP15k or OpenEA.
        out: Rank table to write: .parquet, .csv, .tsv, .csv.gz or .tsv.gz.
        model: gcn-align, or raw: random embeddings, the baseline.
        embeddings (FILE): Instead of --model: .npz of left and right, a row an entity.
        matrix (FILE): Instead of --model: .npz of similarity, left by right entities.
        similarity: How embeddings are compared: l1, l2, cosine or dot.
        train_share: Share of the pairs that train, where DATA has no split (sup_ent_ids, folds). [default:
            0.3]
        fold: Fold of DATA in the layout of OpenEA. [default: 1, with a note]
        dim: Width of the embeddings.
        steps: Training steps, each over all training pairs.
        learning_rate: Of Adam.
        margin: Of the loss, in L1 distances.
        num_negatives: Negatives a training pair and side.
        many_to_many: Allow entities in several pairs; else they are refused.
        assign: Also match all test pairs one-to-one (Hungarian); memory of all pairs.
        name: For the column model; absent: no such column.
        save_embeddings (FILE): Also write the embeddings, as .npz.

    Examples:
        owkg align data/dbp15k/zh_en --out ranks.parquet
        owkg align data/EN_FR_15K_V1 --fold 2 --out ranks.parquet
        owkg align data/dbp15k/zh_en --model raw --out raw.parquet --seed 1
        owkg align data/dbp15k/zh_en --embeddings mine.npz --similarity cosine --assign --out mine.parquet
    """
    if embeddings is not None and matrix is not None:
        raise ValueError("--embeddings and --matrix exclude each other.")
    if matrix is not None and save_embeddings is not None:
        raise ValueError("--save-embeddings has no effect with --matrix.")
    if model not in ("gcn-align", "raw"):
        raise ValueError(f"`model` must be gcn-align or raw, got {model!r}.")
    from owkg.ranks.files import path_checked, write_ranks

    out = path_checked(out)
    check_readable([embeddings, matrix])
    check_writable([out, save_embeddings], [embeddings, matrix])
    from owkg import align as room

    room.similarity_named(similarity)  # before anything is trained
    config = room.Config(
        dim=dim,
        steps=steps,
        learning_rate=learning_rate,
        margin=margin,
        num_negatives=num_negatives,
        seed=seed,
    )
    with noted():
        data = room.read_alignment(
            folder, train_share=train_share, seed=seed, fold=fold, many_to_many=many_to_many
        )
    source = matrix or embeddings
    if matrix is not None:
        given = room.read_similarity(matrix, data)
        table = room.rank_matrix(data, given, model=name)
    else:
        if embeddings is not None:
            given = room.read_entity_embeddings(embeddings, data)
        elif model == "raw":
            given = room.initial_embeddings(data, config)
        else:
            with progress("Training", "steps") as update:
                given = room.train_gcn(data, config, on_progress=update)
        with progress("Ranking", "tiles") as update:
            table = room.rank_embeddings(data, *given, similarity=similarity, model=name, on_progress=update)
    about = dict(table.about) | {"model": model if source is None else source.name, "seed": seed}
    write_ranks(table, out, about)
    if save_embeddings is not None:
        room.write_entity_embeddings(save_embeddings, data, *given)
    beside: dict[str, Any] = {"out": str(out)}
    lines = []
    if assign:
        matched = room.assigned(room.similarity_of_pairs(data, given, similarity=similarity))
        beside["assigned"] = float(matched.mean())
        lines.append(f"matched one-to-one: {beside['assigned']:.4f} of the test pairs")
    lines.append(f"wrote {out}: {len(table):,} ranks")
    setting = {"train_pairs": len(data.train), "test_pairs": len(data.test), "model": about["model"]}
    results = values_by_side(table.frame, _METRICS)
    show_metrics(str(folder), setting, results, form, lines, **beside)
