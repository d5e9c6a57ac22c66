"""`owkg align`: entity alignment trained or evaluated, its pairs ranked in both directions."""

from pathlib import Path
from typing import Annotated, Any

import typer

from owkg.cli.evaluate_output import values_by_side
from owkg.cli.inputs import check_readable, check_writable
from owkg.cli.options import Format, OutputFormat, Seed
from owkg.cli.output import show
from owkg.terminal.progress import progress

_METRICS = ("hits@1", "hits@10", "mrr", "mr", "amri")


def align(
    folder: Annotated[Path, typer.Argument(metavar="DATA", help="Two graphs and their pairs, as in DBP15k.")],
    out: Annotated[Path, typer.Option(help="Rank table to write: .parquet, .csv, .tsv, .csv.gz or .tsv.gz.")],
    model: Annotated[
        str, typer.Option(help="gcn-align, or raw: random embeddings, the baseline.")
    ] = "gcn-align",
    embeddings: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Instead of --model: .npz of left and right, a row an entity."),
    ] = None,
    matrix: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Instead of --model: .npz of similarity, left by right entities."),
    ] = None,
    similarity: Annotated[
        str, typer.Option(help="How embeddings are compared: l1, l2, cosine or dot.")
    ] = "l1",
    train_share: Annotated[
        float, typer.Option(help="Share of the pairs that train, where DATA has no split (sup_ent_ids).")
    ] = 0.3,
    seed: Seed = 0,
    dim: Annotated[int, typer.Option(min=1, help="Width of the embeddings.")] = 200,
    steps: Annotated[int, typer.Option(min=0, help="Training steps, each over all training pairs.")] = 100,
    learning_rate: Annotated[float, typer.Option(help="Of Adam.")] = 0.05,
    margin: Annotated[float, typer.Option(help="Of the loss, in L1 distances.")] = 3.0,
    num_negatives: Annotated[int, typer.Option(min=1, help="Negatives a training pair and side.")] = 5,
    many_to_many: Annotated[
        bool, typer.Option("--many-to-many", help="Allow entities in several pairs; else they are refused.")
    ] = False,
    assign: Annotated[
        bool,
        typer.Option(
            "--assign", help="Also match all test pairs one-to-one (Hungarian); memory of all pairs."
        ),
    ] = False,
    name: Annotated[str | None, typer.Option(help="For the column model; absent: no such column.")] = None,
    save_embeddings: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Also write the embeddings, as .npz.")
    ] = None,
    form: OutputFormat = Format.TABLE,
) -> None:
    """Ranks the entities of a test alignment among those of its pairs, in both directions.

    DATA holds ent_ids_1, ent_ids_2, triples_1, triples_2 and ref_ent_ids, perhaps packed (.gz). GCN-Align's
    structural encoder is trained on the training pairs; or embeddings and similarities of others are ranked.
    The rank table has the relation sameAs: owkg metrics, compare and stability take it as any other.
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
    data = room.read_alignment(folder, train_share=train_share, seed=seed, many_to_many=many_to_many)
    source = matrix or embeddings
    if matrix is not None:
        given: Any = room.read_similarity(matrix, data)
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
    if assign:
        matched = room.assigned(room.similarity_of_pairs(data, given, similarity=similarity))
        beside["assigned"] = float(matched.mean())
    setting = {"train_pairs": len(data.train), "test_pairs": len(data.test), "model": about["model"]}
    show(str(folder), setting, values_by_side(table.frame, _METRICS), form, **beside)
    if form is Format.TABLE:
        if assign:
            print(f"matched one-to-one: {beside['assigned']:.4f} of the test pairs")
        print(f"wrote {out}: {len(table):,} ranks")
