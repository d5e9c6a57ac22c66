"""A rank table in many Parquet files: a folder, a pattern, or partitions such as model=NAME/0.parquet."""

import glob
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple
from urllib.parse import unquote

import polars as pl

from owkg import checks, plugins
from owkg.errors import ArgumentError
from owkg.files.delimited import is_rank_table
from owkg.files.parquet import collected_scan, parquet_rows, scan_parquet
from owkg.files.storage import require_bounded
from owkg.ranks.imported import OWN
from owkg.ranks.reading import OPEN, PLAIN, TableReading, formed, names_of, wide_sides
from owkg.ranks.seeds import seeds_of
from owkg.ranks.table import OPTIONAL, REQUIRED, WIDE, require_columns, sides_spelled, validated_at

# Rows that are in memory at a time while files are read.
_BATCH = 2**20


class DatasetFile(NamedTuple):
    """One file of a dataset.

    Attributes:
        path: of the file.
        named: columns that the names of its folders give, such as model.
        schema: types of all the columns that its rows become, of the named ones too.
        rows: how many ranking tasks.
        unpacked: bytes that they unpack to.
        names: what each of its own columns is called from then on.
        state: tells whether another file, or other content, stands there later.
        read_as: types of the columns that other files hold in another width or form of text.
    """

    path: Path
    named: dict[str, str]
    schema: dict[str, Any]
    rows: int
    unpacked: int
    names: dict[str, str]
    state: tuple[int, ...]
    read_as: Mapping[str, Any] = MappingProxyType({})

    @property
    def sides(self) -> int:
        """How many ranking tasks a row of the file holds."""
        return max(len(wide_sides(self.names.values())), 1)

    def scan(self, *columns: str) -> pl.LazyFrame:
        """Those of some columns that the file itself has, by what they are called."""
        own = {new: pl.col(old) for old, new in self.names.items()}
        for name in own.keys() & self.read_as.keys():
            own[name] = own[name].cast(self.read_as[name], strict=False)
        return scan_parquet(self.path).select(own[new].alias(new) for new in columns if new in own)

    def require_same(self) -> None:
        """Raises ValueError if the file has changed since the dataset was opened."""
        if _state(self.path) != self.state:
            raise ValueError(f"{self.path}: was changed while it was read.")


def _state(path: Path) -> tuple[int, ...]:
    about = path.stat()
    return about.st_ino, about.st_size, about.st_mtime_ns


@dataclass(frozen=True, eq=False)
class RankDataset:
    """A rank table in Parquet files, whose rows are read a part at a time.

    Attributes:
        source: the folder, pattern or file that it is, as it was given.
        files: those with rows, by name.
        model: what the rows are called that have no column model; None: nothing.
    """

    source: str
    files: tuple[DatasetFile, ...]
    model: str | None = None
    reading: TableReading = PLAIN

    @classmethod
    def of(
        cls, source: str | PathLike[str], reading: TableReading = PLAIN, *, lacking: bool = False
    ) -> "RankDataset":
        """The dataset in a folder and its own folders, or in the files that a pattern names.

        A folder called `column=value` gives its files that column. Names that begin with a dot or an
        underscore are left out. A file or folder that is called like the pattern comes first. Warns
        (UserWarning) of tables of other kinds in a folder, which are left out too.

        Args:
            source: the folder, pattern or file.
            reading: what is said of its tables.
            lacking: whether candidates may lack, because a graph will give them.

        Raises:
            ValueError: naming `ranks`, if there is no file; naming the file, if it is no Parquet file or has
                not the columns of a rank table; naming both, if two have different columns or types.
            OSError: if a file cannot be opened.
        """
        path = checks.path("ranks", source)
        if not isinstance(reading.candidates, int | None):
            raise ArgumentError("candidates", f"must be one number for the files of {path}.")
        found: list[DatasetFile] = []
        for file, base in _files(path):
            state = _state(file)
            schema, rows, unpacked = parquet_rows(file)
            own = names_of(schema, reading, source=str(file), told=not found)
            kinds = pl.DataFrame(schema={new: schema[old] for old, new in own.items()})
            formed_schema = formed(kinds, reading, source=str(file), place=str)[0].schema
            named = _named(file, base)
            if twice := [name for name in named if name in formed_schema]:
                raise ValueError(
                    f"{file}: {twice[0]} is a column of the file, and in the name of its folder."
                )
            types = dict(formed_schema) | dict.fromkeys(named, pl.String())
            one = DatasetFile(file, named, types, rows, unpacked, own, state)
            found.append(one._replace(rows=rows * one.sides))
        given = ["candidates"] if lacking else []
        require_columns([*found[0].schema, *given], str(found[0].path))
        files = tuple(file for file in _alike(found) if file.rows)
        if not files:
            raise ArgumentError("ranks", f"must have rows, got none in {len(found):,} files of {path}.")
        return cls(str(path), files, reading=reading)

    @classmethod
    def joined(cls, datasets: Sequence["RankDataset"]) -> "RankDataset":
        """Several datasets as one, with a column model.

        Raises:
            ValueError: naming two files and the column, if they have different columns or types.
        """
        files = []
        for dataset in datasets:
            for file in dataset.files:
                named = {} if "model" in file.schema or dataset.model is None else {"model": dataset.model}
                types = file.schema | dict.fromkeys(named, pl.String())
                files.append(file._replace(named=file.named | named, schema=types))
        files = _alike(files)
        sources, reading = ", ".join(dataset.source for dataset in datasets), datasets[0].reading
        return cls(sources, tuple(files), reading=reading)

    @property
    def rows(self) -> int:
        """How many ranking tasks, rows that say the same twice counted twice."""
        return sum(file.rows for file in self.files)

    @property
    def columns(self) -> list[str]:
        """The columns of rank tables that it has."""
        columns = [name for name in (*REQUIRED, *OPTIONAL, "half_link") if name in self.files[0].schema]
        return columns if self.model is None or "model" in columns else [*columns, "model"]

    def called(self, model: str) -> "RankDataset":
        """The same, whose rows are of the model `model` where they have no column of that name."""
        return replace(self, model=model)

    def unique(self, *columns: str) -> list[Any]:
        """The different entries of some columns, in the order of the files."""
        found: dict[Any, None] = {}
        for file in self.files:
            for column in columns:
                if column in file.named or column not in file.schema:
                    found[file.named.get(column, self.model)] = None
                elif column not in file.names.values():
                    found |= dict.fromkeys(self._formed(column))
                else:
                    query = file.scan(column).unique(maintain_order=len(columns) == 1)
                    entries = collected_scan(file.path, query)[column].drop_nulls()
                    text = column == "side" and entries.dtype == pl.String
                    found |= dict.fromkeys((sides_spelled(entries) if text else entries).to_list())
        return list(found)

    def _formed(self, column: str) -> list[Any]:
        """The entries of a column that no file has, and forming its rows adds."""
        if column == "side":
            return wide_sides(self.files[0].names.values())
        return [True] if column == "averaged" else [self.reading.candidates]

    def seeds(self) -> dict[str | None, tuple[int, ...]]:
        """The seeds of each model that has several, as `owkg.ranks.seeds.seeds_of` of its rows."""
        if "seed" not in self.columns:
            return {}
        own = [name for name in ("model", "seed") if name in self.columns]
        parts = []
        for file in self.files:
            named = {name: file.named[name] for name in own if name in file.named}
            if self.model is not None and "model" not in file.schema:
                named["model"] = self.model
            query = file.scan(*(n for n in own if n not in named)).unique()
            rows = collected_scan(file.path, query) if len(named) < len(own) else pl.DataFrame({"_": [0]})
            parts.append(
                rows.with_columns(**{name: pl.lit(text) for name, text in named.items()}).select(own)
            )
        # Whatever is no whole number is refused where the rows are read.
        kinds = {"seed": pl.col("seed").cast(pl.Int64, strict=False)}
        if "model" in own:
            kinds["model"] = pl.col("model").cast(pl.String, strict=False)
        return seeds_of(pl.concat([part.with_columns(**kinds) for part in parts]).drop_nulls())

    @property
    def lacks_candidates(self) -> bool:
        """Whether its candidates follow from a graph."""
        return "candidates" not in self.files[0].schema

    @property
    def averaged(self) -> bool:
        """Whether only the mean of the optimistic and the pessimistic rank is known of some row."""
        return "averaged" in self.columns and bool({True, "true"} & set(self.unique("averaged")))

    @property
    def other_columns(self) -> list[str]:
        """The columns that are none of those, and are of one type in all files: `score` for one."""
        first = self.files[0]
        return [
            name
            for name, kind in first.schema.items()
            if name not in self.columns and all(file.schema.get(name) == kind for file in self.files)
        ]

    def batches(
        self, on_progress: Callable[[int, int], None] | None = None, *, others: bool = False
    ) -> Iterator[tuple[int, pl.DataFrame]]:
        """The number of a file, and some of its rows as `owkg.ranks.validated` gives them, in their order.

        Args:
            on_progress: called with (done, total) rows.
            others: with `other_columns` too.

        Raises:
            ValueError: as `owkg.ranks.validated`, naming the file and the row in it.
        """
        done, columns = 0, [*self.columns, *(self.other_columns if others else ())]
        if self.lacks_candidates:
            columns.append("candidates")
        for number, file in enumerate(self.files):
            file.require_same()
            # A row takes much where a file is hostile, or labels are long.
            size = max(1, min(_BATCH, 2**29 * file.rows // max(file.unpacked, 1)))
            require_bounded(
                file.path, file.path.stat().st_size, file.unpacked * min(size, file.rows) // file.rows
            )
            own = [name for name in file.names.values() if name in {*columns, "rank", *WIDE}]
            scan = file.scan(*own)
            for start in range(0, file.rows // file.sides, size):
                rows = collected_scan(file.path, scan.slice(start, size))
                rows, place = formed(
                    rows, self.reading, source=str(file.path), place=_places(file.path, start)
                )
                rows = rows.with_columns(**{name: pl.lit(text) for name, text in file.named.items()})
                if self.lacks_candidates:
                    rows = rows.with_columns(candidates=pl.lit(OPEN))
                if self.model is not None and "model" not in rows.columns:
                    rows = rows.with_columns(model=pl.lit(self.model))
                rows = rows.select(columns)
                yield number, validated_at(rows, source=str(file.path), place=place, part=True)
                done += len(rows)
                if on_progress is not None:
                    on_progress(done, self.rows)
            file.require_same()


def is_dataset(source: str | PathLike[str]) -> bool:
    """Whether it is a folder, or a pattern that no file is called by."""
    path = Path(source)
    return path.is_dir() or (glob.has_magic(str(path)) and not path.exists())


def _places(path: Path, start: int) -> Callable[[int], str]:
    return lambda row: f"{path}, row {start + row + 1}"


def _files(path: Path) -> list[tuple[Path, Path]]:
    """The files, each with the folder below which names of folders give columns."""
    if path.is_file():
        return [(path, path.parent)]
    if path.is_dir():
        found, others = _inside(path), _other_tables(path)
        if not found:
            hint = f"; owkg ranks convert makes one of {others[0].name}" if others else ""
            raise ArgumentError("ranks", f"must hold .parquet files, got none in the folder {path}{hint}.")
        if others:
            warnings.warn(
                f"{path}: {len(others):,} tables that are no Parquet files are left out, such as "
                f"{others[0].name}; owkg ranks convert makes one of them.",
                UserWarning,
                stacklevel=4,
            )
        return [(file, path.parent) for file in found]
    if not glob.has_magic(str(path)):
        raise FileNotFoundError(2, "No such file or folder", str(path))
    base = Path(*_until_magic(path.parts))
    pattern = str(Path(*path.parts[len(_until_magic(path.parts)) :]))
    matched = sorted(one for one in base.glob(pattern) if not one.name.startswith("."))
    files = dict.fromkeys(file for one in matched for file in (_inside(one) if one.is_dir() else [one]))
    if not files:
        raise ArgumentError("ranks", f"must name files, and no file matches the pattern {path}.")
    return [(file, base) for file in files]


def _until_magic(parts: Sequence[str]) -> list[str]:
    """The parts of a path ahead of the first with a wildcard."""
    first = next((i for i, part in enumerate(parts) if glob.has_magic(part)), len(parts))
    return list(parts[:first])


def _inside(folder: Path) -> list[Path]:
    """The Parquet files in a folder and its own, but for those that tools hide."""
    files = (file for file in folder.rglob("*") if file.suffix.lower() == ".parquet" and file.is_file())
    hidden = (".", "_")
    return sorted(f for f in files if not any(p.startswith(hidden) for p in f.relative_to(folder).parts))


def _other_tables(folder: Path) -> list[Path]:
    """The files in a folder and its own that are tables by their names, or of a user's kind, no Parquet."""
    plugins.load()
    hidden = (".", "_")
    return sorted(
        file
        for file in folder.rglob("*")
        if file.suffix.lower() != ".parquet"
        and not any(part.startswith(hidden) for part in file.relative_to(folder).parts)
        and file.is_file()
        and (is_rank_table(file) or any(one.is_of(file) for one in OWN.values()))
    )


def _named(file: Path, base: Path) -> dict[str, str]:
    """The columns that the folders between `base` and the file give, and those that end `base`."""
    while "=" in base.name:
        base = base.parent
    folders = file.relative_to(base).parent.parts
    return {key: unquote(value) for key, mark, value in (part.partition("=") for part in folders) if mark}


_TEXTS = (pl.String, pl.Categorical, pl.Enum)


def _alike(files: list[DatasetFile]) -> list[DatasetFile]:
    """The files with columns of one type each: where widths or forms of text differ, the one that holds all.

    Raises:
        ValueError: naming two files and the column, if they have different columns or types.
    """
    shared = {}
    for name in files[0].schema:
        kinds = {file.schema.get(name) for file in files}
        if len(kinds) > 1 and (kind := _shared(kinds)) is not None:
            shared[name] = kind
    if shared:
        files = [
            file._replace(schema=file.schema | shared, read_as={**file.read_as, **shared}) for file in files
        ]
    for other in files[1:]:
        _refuse_other_columns(files[0], other)
    return files


def _shared(kinds: Collection[Any]) -> Any:
    """A type that holds the values of several; None where they are of different sorts."""
    if all(kind in _TEXTS for kind in kinds):
        return pl.String()
    if all(kind is not None and kind.is_integer() for kind in kinds):
        return pl.Int64()
    if all(kind is not None and kind.is_float() for kind in kinds):
        return pl.Float64()
    return None


def _refuse_other_columns(first: DatasetFile, other: DatasetFile) -> None:
    """ValueError naming both files and the column, if they do not have the same columns and types."""
    for name in [*first.schema, *other.schema]:
        here, there = first.schema.get(name), other.schema.get(name)
        if here != there:
            said = [f"{kind} in {one.path}" if kind else f"not in {one.path}"
                    for one, kind in ((first, here), (other, there))]  # fmt: skip
            raise ValueError(
                f"`ranks` must have the same columns in every file: {name} is {' and '.join(said)}."
            )
