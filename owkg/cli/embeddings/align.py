"""`owkg align`: entity alignment, trained or given, with pairs ranked in both directions."""

from pathlib import Path
from typing import Annotated, Any

import typer

from owkg.cli.inputs import check_readable, check_writable, noted
from owkg.cli.options import Format, OutputFormat, Seed
from owkg.cli.output import show_metrics
from owkg.cli.rank_output import values_by_side
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
    """Rank the entities of a test alignment of two graphs, in both directions.

    DATA holds ent_ids_1, ent_ids_2, triples_1, triples_2 and ref_ent_ids (DBP15k), or rel_triples_1,
    rel_triples_2, ent_links and folds such as 721_5fold (OpenEA), compressed (.gz) or not. owkg trains the
    structural encoder of GCN-Align on the training pairs, or ranks embeddings or similarities of your own.
    The rank table has the relation sameAs; owkg metrics, compare and stability accept it like any other.

    Args:
        folder (DATA): Folder of two graphs and their pairs, in the layout of DBP15k or OpenEA.
        out (FILE): Rank table to write: .parquet, .csv, .tsv, .csv.gz or .tsv.gz.
        model (NAME): Model: gcn-align, or raw for random embeddings, as a baseline.
        embeddings (FILE): Embeddings to use instead of --model: .npz with arrays left and right, one row for
            each entity.
        matrix (FILE): Similarities to use instead of --model: .npz with the array similarity, left by right
            entities.
        similarity (NAME): How embeddings are compared: l1, l2, cosine or dot.
        train_share (SHARE): Share of the pairs that are used for training, if DATA has no split (sup_ent_ids,
            folds). Default: 0.3.
        fold (N): Fold of DATA in the layout of OpenEA. Default: 1, with a note.
        name (NAME): Name of the model in the column model. Default: no such column.

    Training:
        dim (N): Dimension of the embeddings.
        steps (N): Number of training steps; each uses all training pairs.
        learning_rate (NUMBER): Learning rate of Adam.
        margin (NUMBER): Margin of the loss, in L1 distances.
        num_negatives (N): Number of negatives for each training pair and side.

    Output:
        assign: Match all test pairs one-to-one as well (Hungarian algorithm). Needs memory for all pairs.
        save_embeddings (FILE): Write the embeddings as .npz, in addition to the rank table.

    Rarely needed:
        many_to_many: Allow entities that occur in several pairs. Default: stop with an error.

    Examples:
        owkg align data/dbp15k/zh_en --out ranks.parquet
        owkg align data/EN_FR_15K_V1 --fold 2 --out ranks.parquet
        owkg align data/dbp15k/zh_en --model raw --out raw.parquet --seed 1
        owkg align data/dbp15k/zh_en --embeddings mine.npz --similarity cosine --assign --out mine.parquet
    """
    if embeddings is not None and matrix is not None:
        raise ValueError("--embeddings and --matrix cannot be combined.")
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
