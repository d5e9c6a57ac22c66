"""The options that name what scores: a trained run, or embeddings trained elsewhere."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from owkg.cli.inputs import collected, graph_in
from owkg.cli.options import GraphOptions, named_values, naming_options

if TYPE_CHECKING:
    from owkg.kg import KnowledgeGraph
    from owkg.kg.read import Reading
    from owkg.train.scorer import Embedded, Scorer


class Source(NamedTuple):
    """What the options name, checked before anything is read: a run, or a file of embeddings."""

    run: Path | None
    file: "Embedded | None"
    kg: Path | None
    step: str | None

    @property
    def path(self) -> Path:
        """What messages name."""
        return Path(str(self.run)) if self.file is None else self.file.path


@dataclass(frozen=True, kw_only=True)
class ScorerOptions:
    """What scores where it is not RUN alone.

    Attributes:
        embeddings (FILE): Instead of RUN: .npz or .safetensors of embeddings and labels.
        model: That --embeddings are of, unless the file says it; owkg models lists them.
        norm: Norm of the distance of transe or rotate: 1, or 2 as PyKEEN's RotatE.
        option (NAME=VALUE): Another option of --model, such as margin=9; repeatable.
        embedding_layout: How real numbers of --embeddings make complex ones: real-imaginary (all real parts
            first) or interleaved (torch.view_as_real). Complex arrays need none.
        relation_layout: What real relations of rotate are: phases (radians) or scaled (authors' code).
        kg (DIR): Folder of the graph; that of the training when absent.
        step: Checkpoint of RUN: best on the validation set, last, or a step. [default: best]
    """

    embeddings: Path | None = None
    model: str | None = None
    norm: int | None = None
    option: list[str] | None = None
    embedding_layout: str | None = None
    relation_layout: str | None = None
    kg: Path | None = None
    step: str | None = None

    def source(self, run: Path | None) -> Source:
        """The source that the options name beside RUN; ValueError for what is missing or too much."""
        from owkg.train.scorer import Embedded, check_source

        given: dict[str, Any] = {} if self.norm is None else {"norm": self.norm}
        given |= named_values(self.option or [], taken=given)
        of_file = self.model is not None or given or self.embedding_layout or self.relation_layout
        if self.embeddings is None and run is not None and of_file:
            raise ValueError("`model` and its options are those that RUN was trained with; leave them out.")
        file = None
        if self.embeddings is not None:
            file = Embedded(self.embeddings, self.model, given, self.embedding_layout, self.relation_layout)
        check_source(run, file, self.kg, self.step)
        return Source(run, file, self.kg, self.step)


def reader(how: GraphOptions) -> "Callable[[Path, Reading], KnowledgeGraph]":
    """Reads the graph of a folder as the options say, and else as it was read for training; each one once."""
    return cache(lambda folder, usual: graph_in(folder, how.reading(usual)))


def scorer_of(
    source: Source, unseen: str, read: "Callable[[Path, Reading], KnowledgeGraph]"
) -> "tuple[Scorer, list[str]]":
    """The scorer of a source, whose graph `read` reads (`reader`), and the warnings about it."""
    from owkg.train.scorer import of_embeddings, of_run

    flags = ("model", "norm", "embeddings", "kg", "embedding_layout", "relation_layout", "unseen")
    flags += ("layout", "duplicates")
    with collected() as notes:
        if source.file is None:
            return of_run(source.path, source.kg, source.step or "best", unseen, read=read), notes
        with naming_options(flags):
            return of_embeddings(source.file, Path(str(source.kg)), unseen, read=read), notes
