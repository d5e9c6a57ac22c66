"""Rank tables in many Parquet files: a folder, a pattern, or partitions such as model=NAME/0.parquet."""

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

# Number of rows in memory at a time while files are read.
_BATCH = 2**20


class DatasetFile(NamedTuple):
    """One file of a dataset.

    Attributes:
        path: path of the file.
        named: columns that the names of its folders give, such as model.
        schema: types of all columns of its rows, including the named ones.
        rows: number of ranking tasks.
        unpacked: number of bytes after unpacking.
        names: names in owkg of its own columns.
        state: identity of the file and its content, to notice later changes.
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
        """Number of ranking tasks in a row of the file."""
        return max(len(wide_sides(self.names.values())), 1)

    def scan(self, *columns: str) -> pl.LazyFrame:
        """Lazy frame of the named columns, if the file itself has them, with their names in owkg."""
        own = {new: pl.col(old) for old, new in self.names.items()}
        for name in own.keys() & self.read_as.keys():
            own[name] = own[name].cast(self.read_as[name], strict=False)
        return scan_parquet(self.path).select(own[new].alias(new) for new in columns if new in own)

    def require_same(self) -> None:
        """ValueError if the file has changed since the dataset was opened."""
        if _state(self.path) != self.state:
            raise ValueError(f"{self.path}: was changed while it was read.")


def _state(path: Path) -> tuple[int, ...]:
    """Inode, size and time of modification of a file."""
    about = path.stat()
    return about.st_ino, about.st_size, about.st_mtime_ns


@dataclass(frozen=True, eq=False)
class RankDataset:
    """Rank table in Parquet files, whose rows are read in parts.

    Attributes:
        source: folder, pattern or file, as given.
        files: files with rows, sorted by name.
        model: model of the rows if they have no column model. Default: none.
        reading: options for the tables.
    """

    source: str
    files: tuple[DatasetFile, ...]
    model: str | None = None
    reading: TableReading = PLAIN

    @classmethod
    def of(
        cls, source: str | PathLike[str], reading: TableReading = PLAIN, *, lacking: bool = False
    ) -> "RankDataset":
        """Dataset in a folder and its subfolders, or in the files that a pattern matches.

        A folder named `column=value` gives its files that column. Names that begin with a dot or an
        underscore are left out. A file or folder whose name equals the pattern takes precedence. Issues a
        UserWarning if a folder holds tables of other kinds, which are left out too.

        Args:
            source: folder, pattern or file.
            reading: options for its tables.
            lacking: whether the tables may lack candidates, because a graph will give them. Default False.

        Raises:
            ValueError: naming `ranks`, if there is no file; naming the file, if it is not a Parquet file or
                lacks columns of a rank table; naming both files, if they have different columns or types.
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
            formed_schema = formed(kinds, reading, source=str(file), place=str, found=schema)[0].schema
            named = _named(file, base)
            if twice := [name for name in named if name in formed_schema]:
                raise ValueError(
                    f"{file}: {twice[0]} is both a column of the file and in the name of its folder."
                )
            types = dict(formed_schema) | dict.fromkeys(named, pl.String())
            one = DatasetFile(file, named, types, rows, unpacked, own, state)
            found.append(one._replace(rows=rows * one.sides))
        given = ["candidates"] if lacking else []
        first = found[0]
        own = [*first.names, *first.named]
        require_columns([*first.schema, *given], str(first.path), own)
        files = tuple(file for file in _alike(found) if file.rows)
        if not files:
            raise ArgumentError("ranks", f"must have rows, got none in {len(found):,} files of {path}.")
        return cls(str(path), files, reading=reading)

    @classmethod
    def joined(cls, datasets: Sequence["RankDataset"]) -> "RankDataset":
        """Union of several datasets, with a column model.

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
        """Number of ranking tasks; repeated rows count each time."""
        return sum(file.rows for file in self.files)

    @property
    def columns(self) -> list[str]:
        """Columns of rank tables that the dataset has."""
        columns = [name for name in (*REQUIRED, *OPTIONAL, "half_link") if name in self.files[0].schema]
        return columns if self.model is None or "model" in columns else [*columns, "model"]

    def called(self, model: str) -> "RankDataset":
        """Dataset whose rows belong to `model` if they have no column model."""
        return replace(self, model=model)

    def unique(self, *columns: str) -> list[Any]:
        """Distinct entries of some columns, in the order of the files."""
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
        """Entries of a column that no file has and that forming the rows adds."""
        if column == "side":
            return wide_sides(self.files[0].names.values())
        return [True] if column == "averaged" else [self.reading.candidates]

    def seeds(self) -> dict[str | None, tuple[int, ...]]:
        """Seeds of each model that has several, as `owkg.ranks.seeds.seeds_of` gives them."""
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
        # Entries that are not whole numbers raise an error when the rows are read.
        kinds = {"seed": pl.col("seed").cast(pl.Int64, strict=False)}
        if "model" in own:
            kinds["model"] = pl.col("model").cast(pl.String, strict=False)
        return seeds_of(pl.concat([part.with_columns(**kinds) for part in parts]).drop_nulls())

    @property
    def lacks_candidates(self) -> bool:
        """Whether the number of candidates comes from a graph."""
        return "candidates" not in self.files[0].schema

    @property
    def averaged(self) -> bool:
        """Whether only the mean of the optimistic and the pessimistic rank is known for some row."""
        return "averaged" in self.columns and bool({True, "true"} & set(self.unique("averaged")))

    @property
    def other_columns(self) -> list[str]:
        """Further columns that have one type in all files, such as `score`."""
        first = self.files[0]
        return [
            name
            for name, kind in first.schema.items()
            if name not in self.columns and all(file.schema.get(name) == kind for file in self.files)
        ]

    def batches(
        self, on_progress: Callable[[int, int], None] | None = None, *, others: bool = False
    ) -> Iterator[tuple[int, pl.DataFrame]]:
        """Batches of rows in order, each with the number of its file, as `owkg.ranks.validated` returns them.

        Args:
            on_progress: function called with (done, total) rows.
            others: whether to include `other_columns`. Default False.

        Raises:
            ValueError: as `owkg.ranks.validated`, naming the file and the row in it.
        """
        done, columns = 0, [*self.columns, *(self.other_columns if others else ())]
        if self.lacks_candidates:
            columns.append("candidates")
        for number, file in enumerate(self.files):
            file.require_same()
            # Rows take much memory if labels are long or a file is hostile.
            size = max(1, min(_BATCH, 2**29 * file.rows // max(file.unpacked, 1)))
            require_bounded(
                file.path, file.path.stat().st_size, file.unpacked * min(size, file.rows) // file.rows
            )
            own = [name for name in file.names.values() if name in {*columns, "rank", *WIDE}]
            scan = file.scan(*own)
            for start in range(0, file.rows // file.sides, size):
                rows = collected_scan(file.path, scan.slice(start, size))
                place = _places(file.path, start)
                rows, place = formed(rows, self.reading, source=str(file.path), place=place, found=file.names)
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
    """Whether a source is a folder, or a pattern that is not the name of a file."""
    path = Path(source)
    return path.is_dir() or (glob.has_magic(str(path)) and not path.exists())


def _places(path: Path, start: int) -> Callable[[int], str]:
    """Function from a row of a batch to its name in messages."""
    return lambda row: f"{path}, row {start + row + 1}"


def _files(path: Path) -> list[tuple[Path, Path]]:
    """Files, each with the folder below which folder names give columns."""
    if path.is_file():
        return [(path, path.parent)]
    if path.is_dir():
        found, others = _inside(path), _other_tables(path)
        if not found:
            hint = f"; owkg ranks convert makes one from {others[0].name}" if others else ""
            raise ArgumentError("ranks", f"must hold .parquet files, got none in the folder {path}{hint}.")
        if others:
            warnings.warn(
                f"{path}: {len(others):,} tables that are not Parquet files are left out, such as "
                f"{others[0].name}; owkg ranks convert makes Parquet files from them.",
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
        raise ArgumentError("ranks", f"must name files, but no file matches the pattern {path}.")
    return [(file, base) for file in files]


def _until_magic(parts: Sequence[str]) -> list[str]:
    """Parts of a path before the first one with a wildcard."""
    first = next((i for i, part in enumerate(parts) if glob.has_magic(part)), len(parts))
    return list(parts[:first])


def _inside(folder: Path) -> list[Path]:
    """Parquet files in a folder and its subfolders, without hidden ones."""
    files = (file for file in folder.rglob("*") if file.suffix.lower() == ".parquet" and file.is_file())
    hidden = (".", "_")
    return sorted(f for f in files if not any(p.startswith(hidden) for p in f.relative_to(folder).parts))


def _other_tables(folder: Path) -> list[Path]:
    """Files in a folder and its subfolders, not Parquet, that are rank tables by name or user's importer."""
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
    """Columns that the folders between `base` and the file give, and the folders that end `base`."""
    while "=" in base.name:
        base = base.parent
    folders = file.relative_to(base).parent.parts
    return {key: unquote(value) for key, mark, value in (part.partition("=") for part in folders) if mark}


_TEXTS = (pl.String, pl.Categorical, pl.Enum)


def _alike(files: list[DatasetFile]) -> list[DatasetFile]:
    """Files with one type for each column; if widths or forms of text differ, the type that holds all values.

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
    """Type that holds the values of several types; None if there is none."""
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
