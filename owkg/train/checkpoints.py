"""Checkpoints: a folder a step, whole or not there, with checksums that tell if it is still whole."""

import os
import re
import secrets
import shutil
import warnings
from collections.abc import Collection
from pathlib import Path
from typing import Any, NamedTuple

import jax

from owkg import provenance
from owkg.train.step import State

_MADE_BY = "owkg train, checkpoint"
_STATE = "state"
# What a checkpoint takes beside its arrays.
_MORE = 2**16
# A checkpoint that is being written, as `made_folder` names it, or removed.
_CUT_SHORT = re.compile(r"\.\d+\.[0-9a-f]{8}\.(new|old)")


class Checkpoint(NamedTuple):
    """A state, and how many steps led to it."""

    step: int
    state: State


def write_checkpoint(folder: Path, step: int, state: State) -> None:
    """Writes `state` as `folder`/`step`, beside first, so that a checkpoint is whole or not there.

    Raises:
        OSError: if it cannot be written; other checkpoints stay as they are.
    """
    import orbax.checkpoint as ocp

    path = folder.absolute() / str(step)
    if path.exists():  # of the same run and step, so the same
        return
    try:
        with provenance.made_folder(path, made_by=_MADE_BY) as new:
            _reserve(new / "reserved", sum(x.nbytes for x in jax.tree.leaves(state)))
            with ocp.Checkpointer(ocp.StandardCheckpointHandler()) as checkpointer:
                checkpointer.save(new / _STATE, args=ocp.args.StandardSave(state))
            content = {"made_by": _MADE_BY, "shapes": _shapes(state), "sha256": provenance.checksums(new)}
            provenance.write_metadata(new, content)
    except OSError:
        raise
    except Exception as error:  # what the layers below make of it
        raise OSError(f"{path}: cannot be written: {str(error).splitlines()[0][:300]}") from None


def read_checkpoint(folder: Path, step: int, like: Any) -> State:
    """The state in `folder`/`step`.

    Args:
        folder: of the checkpoints.
        step: that is read.
        like: a state of the same shapes, of arrays or `jax.ShapeDtypeStruct`.

    Raises:
        ValueError: if the checkpoint is not there, damaged, or of other shapes.
    """
    import orbax.checkpoint as ocp

    path = folder.absolute() / str(step)
    if not path.is_dir():
        there = ", ".join(map(str, checkpoint_steps(folder))) or "none"
        raise ValueError(f"{path}: is not there; `step` must be one of: {there}.")
    held, wanted = _require_whole(path), _shapes(like)
    for name in sorted(held.keys() | wanted.keys()):
        got, asked = held.get(name, "nothing"), wanted.get(name, "nothing")
        if got != asked:
            raise ValueError(f"{path}: is of another model or shape: {name} is {got}, and not {asked}.")
    # Where it was written does not matter: a model of an accelerator is read by a machine without.
    here = jax.sharding.SingleDeviceSharding(jax.devices()[0])
    target = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=here), like)
    with ocp.Checkpointer(ocp.StandardCheckpointHandler()) as checkpointer:
        return checkpointer.restore(path / _STATE, args=ocp.args.StandardRestore(target))


def newest_checkpoint(folder: Path, like: Any) -> Checkpoint | None:
    """The newest checkpoint that is whole, or None.

    Those that are not are put aside, and a warning names them. What a write that was cut short left goes.

    Args:
        folder: of the checkpoints.
        like: a state of the same shapes.

    Raises:
        ValueError: if the newest that is whole is of other shapes.
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
    return Checkpoint(whole[-1], read_checkpoint(folder, whole[-1], like)) if whole else None


def checkpoint_steps(folder: Path) -> list[int]:
    """The steps of the checkpoints, increasing."""
    names = (path.name for path in folder.iterdir() if path.is_dir()) if folder.is_dir() else ()
    return sorted(int(name) for name in names if name.isdecimal())


def keep_checkpoints(folder: Path, steps: Collection[int]) -> None:
    """Removes all checkpoints but those of `steps`; each is whole, or no checkpoint any more."""
    for step in set(checkpoint_steps(folder)) - set(steps):
        going = folder / f".{step}.{secrets.token_hex(4)}.old"
        (folder / str(step)).rename(going)
        shutil.rmtree(going)


def _require_whole(path: Path) -> dict[str, str]:
    """Type and shape of every array in the checkpoint at `path`.

    Raises:
        ValueError: if it is not as it was written.
    """
    content = provenance.read_metadata(path)
    if damaged := content["sha256"].items() ^ provenance.checksums(path).items():
        raise ValueError(f"{path}: is damaged; {min(damaged)[0]} is not as it was written.")
    shapes = content.get("shapes")
    if not isinstance(shapes, dict):
        raise ValueError(f"{path}: is damaged; its metadata holds no shapes.")
    return shapes


def _reserve(path: Path, size: int) -> None:
    """Finds out whether there is room for so many bytes: threads of orbax that find none end in tracebacks.

    Raises:
        OSError: if there is not.
    """
    if hasattr(os, "posix_fallocate"):
        with path.open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, size + _MORE)
        path.unlink()


def _shapes(state: Any) -> dict[str, str]:
    """Type and shape of every array, by its place."""
    leaves = jax.tree_util.tree_leaves_with_path(state)
    return {jax.tree_util.keystr(at): f"{x.dtype}{list(x.shape)}" for at, x in leaves}
