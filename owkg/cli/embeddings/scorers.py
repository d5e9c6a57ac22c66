"""The options that name what scores: a trained run, or embeddings trained elsewhere."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from owkg.cli.inputs import collected, graph_in
from owkg.cli.options import named_values, naming_options

if TYPE_CHECKING:
    from collections.abc import Callable

    from owkg.kg import KnowledgeGraph
    from owkg.train.scorer import Scorer

RunFolder = Annotated[
    Path | None,
    typer.Argument(
        metavar="[RUN]", help="Folder that owkg train wrote, with --seeds or without.", show_default=False
    ),
]
EmbeddingsFile = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Instead of RUN: .npz or .safetensors of embeddings and labels."),
]
ModelOfEmbeddings = Annotated[
    str | None,
    typer.Option(help="That --embeddings are of, unless the file says it; owkg models lists them."),
]
Norm = Annotated[
    int | None, typer.Option(help="Norm of the distance of transe or rotate: 1, or 2 as PyKEEN's RotatE.")
]
ModelOption = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME=VALUE", help="Another option of --model, such as margin=9; repeatable."),
]
Layout = Annotated[
    str | None,
    typer.Option(
        help="How real numbers of --embeddings make complex ones: real-imaginary (all real parts first) "
        "or interleaved (torch.view_as_real). Complex arrays need none."
    ),
]
RelationLayout = Annotated[
    str | None,
    typer.Option(help="What real relations of rotate are: phases (radians) or scaled (authors' code)."),
]
GraphFolder = Annotated[
    Path | None, typer.Option(metavar="DIR", help="Folder of the graph; that of the training when absent.")
]
Step = Annotated[
    str | None,
    typer.Option(help="Checkpoint of RUN: best on the validation set, last, or a step.", show_default="best"),
]


class Source(NamedTuple):
    """What the options name, checked before anything is read: a run, or a file of embeddings."""

    run: Path | None
    file: Any
    kg: Path | None
    step: str | None

    @property
    def path(self) -> Path:
        """What messages name."""
        return Path(str(self.run)) if self.file is None else self.file.path


def source_of(
    run: Path | None,
    embeddings: Path | None,
    model: str | None,
    norm: int | None,
    option: list[str] | None,
    layout: str | None,
    relation_layout: str | None,
    kg: Path | None,
    step: str | None,
) -> Source:
    """The source that the options name; ValueError for what is missing or too much."""
    from owkg.train.scorer import Embedded, check_source

    given: dict[str, Any] = {} if norm is None else {"norm": norm}
    given |= named_values(option or [], taken=given)
    if embeddings is None and run is not None and (model is not None or given or layout or relation_layout):
        raise ValueError("`model` and its options are those that RUN was trained with; leave them out.")
    file = None if embeddings is None else Embedded(embeddings, model, given, layout, relation_layout)
    check_source(run, file, kg, step)
    return Source(run, file, kg, step)


def scorer_of(
    source: Source, unseen: str, *, read: "Callable[[Path], KnowledgeGraph]" = graph_in
) -> "tuple[Scorer, list[str]]":
    """The scorer of a source, whose graph `read` reads, and the warnings about it."""
    from owkg.train.scorer import of_embeddings, of_run

    flags = ("model", "norm", "embeddings", "kg", "layout", "relation_layout", "unseen")
    with collected() as notes:
        if source.file is None:
            return of_run(source.path, source.kg, source.step or "best", unseen, read=read), notes
        with naming_options(flags):
            return of_embeddings(source.file, Path(str(source.kg)), unseen, read=read), notes
