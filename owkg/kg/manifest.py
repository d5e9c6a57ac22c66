"""`dataset.yaml` of LibKGE: which file holds what. As much of YAML as such files use, and no more."""

import re
from pathlib import Path
from typing import NamedTuple

from owkg.kg.layouts import SPLIT_NAME, find_file, ordered_splits
from owkg.kg.lines import line_error, read_lines

_LINE = re.compile(r"( *)([\w.\-]+):(?: +(.*?))? *")
_QUOTED = re.compile(r"'([^']*)'|\"([^\"\\]*)\"")


class Manifest(NamedTuple):
    """What a `dataset.yaml` says.

    Attributes:
        entity_ids: the file of the entities.
        relation_ids: the file of the relations.
        splits: the files of the triples, by split.
        sizes: what is said of the number of lines of a file, and on which line of the manifest.
    """

    entity_ids: Path
    relation_ids: Path
    splits: dict[str, Path]
    sizes: dict[Path, tuple[int, int]]


def read_manifest(path: Path) -> Manifest:
    """Reads a `dataset.yaml`: lines `key: value`, nested by indentation or by dots in the key, and comments.

    Every file of type "triples" is a split.

    Raises:
        ValueError: naming file and line, if a line is of another form, a split is of another type, or
            a file is not there.
    """
    values = _flat(path)
    folder = path.parent

    def file(name: str, default: str) -> Path:
        named, line = values.get(f"dataset.files.{name}.filename", (default, 1))
        if Path(named).name != named:
            raise line_error(path, line, f"must name a file beside this one, got {named!r}.")
        return find_file(folder, named)

    splits, sizes = {}, {}
    for key, (kind, line) in values.items():
        name = key.removeprefix("dataset.files.").removesuffix(".type")
        if key != f"dataset.files.{name}.type":
            continue
        if kind == "triples":
            splits[name] = file(name, f"{name}.del")
        elif re.fullmatch(SPLIT_NAME, name):
            raise line_error(path, line, f"the split {name} must be of type triples, got {kind!r}.")
    entity_ids, relation_ids = file("entity_ids", "entity_ids.del"), file("relation_ids", "relation_ids.del")
    said = {f"dataset.files.{name}.size": file for name, file in splits.items()}
    said |= {"dataset.num_entities": entity_ids, "dataset.num_relations": relation_ids}
    for key, file_said in said.items():
        if key in values:
            number, line = values[key]
            if not re.fullmatch("[0-9]{1,18}", number):
                raise line_error(path, line, f"{key} must be a whole number, got {number!r}.")
            sizes[file_said] = (int(number), line)
    return Manifest(entity_ids, relation_ids, ordered_splits(splits, folder, "libkge"), sizes)


def _flat(path: Path) -> dict[str, tuple[str, int]]:
    """(value, line) by the full key, its parts joined by dots."""
    values: dict[str, tuple[str, int]] = {}
    above: list[tuple[int, str]] = []  # (indentation, key) of the mappings around this line
    for number, raw in enumerate(read_lines(path).to_list(), start=1):
        line = re.sub(r"(^|\s)#.*", "", raw).rstrip()
        if not line or line == "---":
            continue
        match = _LINE.fullmatch(line)
        if not match:
            raise line_error(path, number, f'must be "key: value", got {raw!r}.')
        indent, key, value = len(match[1]), match[2], match[3] or ""
        above = [(outer, name) for outer, name in above if outer < indent]
        full = ".".join([*(name for _, name in above), key])
        if not value:
            above.append((indent, key))
            continue
        if quoted := _QUOTED.fullmatch(value):
            value = quoted[1] or quoted[2] or ""
        elif value[0] in "[{&*!|>'\"":
            raise line_error(path, number, f"must be a plain value, got {value!r}.")
        if full in values:
            raise line_error(path, number, f"{full} stands on line {values[full][1]} already.")
        values[full] = (value, number)
    return values
