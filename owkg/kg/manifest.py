"""`dataset.yaml` of LibKGE, which names the files of a data set."""

import re
import warnings
from pathlib import Path
from typing import NamedTuple

from owkg.files.lines import line_error, read_lines
from owkg.kg.layouts import LIBKGE_SPLIT, SPLIT_NAME, find_file, ordered_splits


class Manifest(NamedTuple):
    """Files of a data set; for some, the stated number of lines and the line that states it."""

    entity_ids: Path
    relation_ids: Path
    splits: dict[str, Path]
    sizes: dict[Path, tuple[int, int]]


def read_manifest(path: Path) -> Manifest:
    """Manifest in a `dataset.yaml`: plain values by keys, nested by indentation or by dots in the key.

    Every file of type "triples" is a split.

    Raises:
        ValueError: naming file and line, if a line has another form, a split has another type or none, or a
            file is missing or not in the folder of the manifest.
    """
    values = _flat(path)
    folder = path.parent

    def file(name: str, default: str) -> Path:
        named, line = values.get(f"dataset.files.{name}.filename", (default, 1))
        if Path(named).name != named:
            outside = Path(named).is_absolute() or ".." in Path(named).parts
            where = "outside of" if outside else "in a folder within"
            message = f"must name a file in the same folder, got {named!r}, which is {where} it."
            raise line_error(path, line, message)
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
    for key, (named, line) in values.items():
        found = re.fullmatch(rf"dataset\.files\.({SPLIT_NAME})\.filename", key)
        if found and f"dataset.files.{found[1]}.type" not in values:
            file(found[1], named)
            message = f"names {named!r} for the split {found[1]}, whose type must be triples, got none."
            raise line_error(path, line, message)
    entity_ids, relation_ids = file("entity_ids", "entity_ids.del"), file("relation_ids", "relation_ids.del")
    said = {f"dataset.files.{name}.size": file for name, file in splits.items()}
    said |= {"dataset.num_entities": entity_ids, "dataset.num_relations": relation_ids}
    for key, file_said in said.items():
        if key in values:
            number, line = values[key]
            if not re.fullmatch("[0-9]{1,18}", number):
                raise line_error(path, line, f"{key} must be a whole number, got {number!r}.")
            sizes[file_said] = (int(number), line)
    splits = ordered_splits(splits, folder, "libkge")
    _note_left_out(path, splits)
    return Manifest(entity_ids, relation_ids, splits, sizes)


def _note_left_out(path: Path, splits: dict[str, Path]) -> None:
    """Issues a warning about files next to a `dataset.yaml` that are named like splits, but are not in it."""
    there = sorted(one for one in path.parent.iterdir() if LIBKGE_SPLIT.fullmatch(one.name))
    if left := [one.name for one in there if one not in splits.values()]:
        warnings.warn(
            f"{path}: does not name {', '.join(left)} as splits of type triples, so they are left out.",
            UserWarning,
            stacklevel=3,
        )


def _flat(path: Path) -> dict[str, tuple[str, int]]:
    """Value and line by full key, whose parts are joined by dots."""
    import yaml

    lines = read_lines(path).to_list()
    values: dict[str, tuple[str, int]] = {}
    above: list[str] = []  # keys of the mappings around this event
    key: str | None = ""
    number = 1
    try:
        for event in yaml.parse("\n".join(lines), Loader=yaml.SafeLoader):
            number = min(event.start_mark.line + 1, len(lines))
            match event:
                case yaml.MappingStartEvent(anchor=None, tag=None, flow_style=False) if key is not None:
                    above, key = [*above, key], None
                case yaml.MappingEndEvent():
                    above, key = above[:-1], None
                case yaml.ScalarEvent(anchor=None, tag=None) if above and key is None:
                    key = event.value
                case yaml.ScalarEvent(anchor=None, tag=None) if above and key is not None:
                    full, key = ".".join([*above[1:], key]), None
                    if full in values:
                        raise line_error(path, number, f"{full} is already on line {values[full][1]}.")
                    if event.value or event.style:  # not null
                        values[full] = (event.value, number)
                case yaml.NodeEvent():
                    must = "a plain value" if above else '"key: value"'
                    raise line_error(path, number, f"must be {must}, got {lines[number - 1]!r}.")
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        number = min(mark.line + 1, len(lines)) if mark else number
        raise line_error(path, number, f'must be "key: value", got {lines[number - 1]!r}.') from None
    return values
