"""Options that name a scorer: a trained run, or embeddings trained elsewhere."""

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
    """Run or file of embeddings that the options name, checked before anything is read."""

    run: Path | None
    file: "Embedded | None"
    kg: Path | None
    step: str | None

    @property
    def path(self) -> Path:
        """Path that messages name."""
        return Path(str(self.run)) if self.file is None else self.file.path


@dataclass(frozen=True, kw_only=True)
class ScorerOptions:
    """Options of a scorer in addition to RUN.

    Attributes:
        kg (DIR): Folder of the graph. Default: the graph of the training.
        step (best|last|N): Checkpoint of RUN: the best on the validation set, the last, or a step. Default:
            best.

    Embeddings from other programs:
        embeddings (FILE): Embeddings and labels to use instead of RUN, as .npz or .safetensors.
        model (NAME): Model that --embeddings belong to; owkg models lists them. Default: as the file says.
        norm (1|2): Norm of the distance of transe or rotate; 2 is what PyKEEN's RotatE uses. Default: as the
            file says, otherwise as owkg models lists it.
        option (NAME=VALUE): Another option of --model, such as margin=9. Repeat the option for several.
        embedding_layout (LAYOUT): How real numbers of --embeddings make complex ones: real-imaginary (all
            real parts first) or interleaved (torch.view_as_real). Complex arrays need none.
        relation_layout (LAYOUT): Meaning of real relation embeddings of rotate: phases (radians) or scaled
            (as in the authors' code).
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
        """Source that RUN and the options name; ValueError if an option is missing or contradicts RUN."""
        from owkg.train.scorer import Embedded, check_source

        given: dict[str, Any] = {} if self.norm is None else {"norm": self.norm}
        given |= named_values(self.option or [], taken=given)
        of_file = self.model is not None or given or self.embedding_layout or self.relation_layout
        if self.embeddings is None and run is not None and of_file:
            raise ValueError("`model` and its options cannot be given with RUN, which has its own.")
        file = None
        if self.embeddings is not None:
            file = Embedded(self.embeddings, self.model, given, self.embedding_layout, self.relation_layout)
        check_source(run, file, self.kg, self.step)
        return Source(run, file, self.kg, self.step)


def reader(how: GraphOptions) -> "Callable[[Path, Reading], KnowledgeGraph]":
    """Cached function that reads a graph by the options, which default to those of the training."""
    return cache(lambda folder, usual: graph_in(folder, how.reading(usual)))


def scorer_of(
    source: Source, unseen: str, read: "Callable[[Path, Reading], KnowledgeGraph]"
) -> "tuple[Scorer, list[str]]":
    """Scorer of a source, and warnings about it; `read` reads its graph, as returned by `reader`."""
    from owkg.train.scorer import of_embeddings, of_run

    flags = ("model", "norm", "embeddings", "kg", "embedding_layout", "relation_layout", "unseen")
    flags += ("layout", "duplicates")
    with collected() as notes:
        if source.file is None:
            return of_run(source.path, source.kg, source.step or "best", unseen, read=read), notes
        with naming_options(flags):
            return of_embeddings(source.file, Path(str(source.kg)), unseen, read=read), notes
