"""Checkpoints: one folder per step, complete or absent, with checksums that show damage."""

import re
import shutil
import warnings
import zipfile
from collections.abc import Callable, Collection, Iterator
from functools import partial
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.tree_util import KeyPath
from jaxtyping import Array

from owkg.files import storage
from owkg.files.begun import MARK, name_beside
from owkg.train.hosts import by_first
from owkg.train.layout import MeshLayout, host_blocks, put_at, unpadded
from owkg.train.state import State

_MADE_BY = "owkg train, checkpoint"
_STATE = "state.npz"
# Folder of a checkpoint that is being written or removed, as `made_folder` names it.
_CUT_SHORT = re.compile(rf"\.\d+\.{MARK}\.(new|old)")


# Function from (NumPy array, its place in the state) to an array.
Put = Callable[[np.ndarray, KeyPath], Array | np.ndarray]


class Checkpoint(NamedTuple):
    """State of a training and the number of steps that led to it."""

    step: int
    state: State


def write_checkpoint(
    folder: Path, step: int, state: State, path_sha256: str, layout: MeshLayout | None = None
) -> None:
    """Writes `state` as `folder`/`step`, atomically, with the checksum of the training path up to that step.

    All processes take part, and the first one writes. Tables are written in blocks of rows, in the order of
    the entities, so that a checkpoint does not depend on `layout` and no device or host holds a whole table.

    Raises:
        OSError: if the checkpoint cannot be written; other checkpoints stay unchanged.
    """
    path = folder.absolute() / str(step)
    like = _unpadded(state, layout)
    blocks = _blocks(state, layout)

    def write() -> None:
        if path.exists():  # an equal checkpoint, of the same run and step
            return
        with storage.made_folder(path, made_by=_MADE_BY) as new:
            _save(new / _STATE, like, blocks)
            content = {"made_by": _MADE_BY, "shapes": _shapes(like), "path_sha256": path_sha256}
            storage.write_metadata(new, content | {"sha256": storage.checksums(new)})

    by_first(write, made=blocks)


def _unpadded(state: State, layout: MeshLayout | None) -> State:
    """Shapes of `state` without the padding rows."""
    if layout is None:
        return state

    return jax.eval_shape(partial(unpadded, layout), state)


def _blocks(state: State, layout: MeshLayout | None) -> Iterator[tuple[str, np.ndarray]]:
    """(Place of an array, some of its rows) for all blocks of all arrays."""
    for at, x in jax.tree_util.tree_leaves_with_path(state):
        for block in host_blocks(layout, x, at):
            yield jax.tree_util.keystr(at), block


def _save(path: Path, like: State, blocks: Iterator[tuple[str, np.ndarray]]) -> None:
    """Writes a file like `numpy.savez`, from arrays that come in blocks of rows."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED, allowZip64=True) as archive:
        for name, some in groupby(blocks, key=itemgetter(0)):
            x = _leaves(like)[name]
            header = np.lib.format.header_data_from_array_1_0(np.empty(0, x.dtype)) | {"shape": x.shape}
            with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
                np.lib.format.write_array_header_1_0(file, header)
                for _, block in some:
                    file.write(np.ascontiguousarray(block).data)


def read_checkpoint(folder: Path, step: int, like: State, put: Put | None = None) -> State:
    """State in `folder`/`step`; `like` has its shapes, as arrays or `jax.ShapeDtypeStruct`.

    `put` converts each array, given with its place in the state. None: to a JAX array.

    Raises:
        ValueError: if the checkpoint is missing, damaged, or has other shapes.
    """
    path = folder.absolute() / str(step)
    if not path.is_dir():
        there = ", ".join(map(str, checkpoint_steps(folder))) or "none"
        raise ValueError(f"{path}: is not there; `step` must be one of: {there}.")
    _require_whole(path)
    require_like(folder, step, like)
    put = put or (lambda array, _: jnp.asarray(array))
    with np.load(path / _STATE, allow_pickle=False) as file:
        places = (at for at, _ in jax.tree_util.tree_leaves_with_path(like))
        leaves = [put(file[jax.tree_util.keystr(at)], at) for at in places]
    return jax.tree.unflatten(jax.tree.structure(like), leaves)


def put_by(layout: MeshLayout | None) -> Put | None:
    """Argument `put` of `read_checkpoint` that places a state on the devices of `layout`."""
    return None if layout is None else partial(put_at, layout)


def require_like(folder: Path, step: int, like: State) -> None:
    """Raises ValueError if the checkpoint `folder`/`step` has other shapes than `like`."""
    path = folder.absolute() / str(step)
    held, wanted = _metadata(path)["shapes"], _shapes(like)
    for name in sorted(held.keys() | wanted.keys()):
        got, asked = held.get(name, "nothing"), wanted.get(name, "nothing")
        if got != asked:
            raise ValueError(f"{path}: is of another model or shape: {name} must be {asked}, got {got}.")


def noted_path(folder: Path, step: int) -> str:
    """Checksum of the training path recorded with the checkpoint `folder`/`step`."""
    noted = storage.read_metadata(folder / str(step)).get("path_sha256")
    return noted if isinstance(noted, str) else "none"


def newest_checkpoint(folder: Path, like: State, put: Put | None = None) -> Checkpoint | None:
    """Newest undamaged checkpoint, or None; `like` and `put` are the arguments of `read_checkpoint`.

    Damaged checkpoints are renamed with a warning, and the remains of interrupted writes are removed.

    Raises:
        ValueError: if the newest undamaged checkpoint has other shapes.
    """
    for path in folder.iterdir() if folder.is_dir() else ():
        if _CUT_SHORT.fullmatch(path.name):
            shutil.rmtree(path)
    for step in checkpoint_steps(folder):
        path = folder / str(step)
        try:
            _require_whole(path)
        except ValueError as error:
            aside = path.with_name(f"{step}.damaged")
            shutil.rmtree(aside, ignore_errors=True)
            path.rename(aside)
            warnings.warn(f"{error} It is now {aside.name}.", UserWarning, stacklevel=2)
    whole = checkpoint_steps(folder)
    return Checkpoint(whole[-1], read_checkpoint(folder, whole[-1], like, put)) if whole else None


def checkpoint_steps(folder: Path) -> list[int]:
    """Steps of the checkpoints, increasing."""
    names = (path.name for path in folder.iterdir() if path.is_dir()) if folder.is_dir() else ()
    return sorted(int(name) for name in names if name.isdecimal())


def keep_checkpoints(folder: Path, steps: Collection[int]) -> None:
    """Removes all checkpoints except those at `steps`; an interrupt leaves none incomplete."""
    for step in set(checkpoint_steps(folder)) - set(steps):
        going = folder / name_beside(str(step), "old")
        (folder / str(step)).rename(going)
        shutil.rmtree(going)


def _require_whole(path: Path) -> None:
    """Raises ValueError if the checkpoint at `path` has changed since it was written."""
    if damaged := _metadata(path)["sha256"].items() ^ storage.checksums(path).items():
        raise ValueError(f"{path}: is damaged; {min(damaged)[0]} is not as it was written.")


def _metadata(path: Path) -> dict[str, Any]:
    content = storage.read_metadata(path)
    if not isinstance(content.get("shapes"), dict):
        raise ValueError(f"{path}: is damaged; its metadata holds no shapes.")
    return content


def _shapes(state: State) -> dict[str, str]:
    """Type and shape of every array, by its place."""
    return {name: f"{x.dtype}{list(x.shape)}" for name, x in _leaves(state).items()}


def _leaves(state: State) -> dict[str, Array | jax.ShapeDtypeStruct]:
    """Arrays by their place."""
    return {jax.tree_util.keystr(at): x for at, x in jax.tree_util.tree_leaves_with_path(state)}
