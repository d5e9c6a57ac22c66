"""Checkpoints: a folder a step, whole or not there."""

import shutil
import warnings
from collections.abc import Collection
from pathlib import Path
from typing import Any, NamedTuple

import jax

from owkg.train.step import State


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
        with ocp.Checkpointer(ocp.StandardCheckpointHandler()) as checkpointer:
            checkpointer.save(path, args=ocp.args.StandardSave(state))
    except Exception as error:  # whatever comes out of the layers below: a full disk has many names
        clear_unfinished(folder)
        kept = ", ".join(map(str, checkpoint_steps(folder))) or "none"
        reason = str(error).split("\n")[0][:300]
        raise OSError(f"{path}: cannot be written ({reason}); checkpoints that are whole: {kept}.") from None


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
    here = jax.sharding.SingleDeviceSharding(jax.devices()[0])
    wanted = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=here), like)
    try:
        with ocp.Checkpointer(ocp.StandardCheckpointHandler()) as checkpointer:
            return checkpointer.restore(path, args=ocp.args.StandardRestore(wanted))
    except Exception as error:  # as above
        reason = str(error).split("\n")[0][:300]
        raise ValueError(f"{path}: is damaged, or of another model or shape ({reason}).") from None


def newest_checkpoint(folder: Path, like: Any) -> Checkpoint | None:
    """The newest checkpoint that can be read, or None; a warning names those that cannot, and they go.

    Args:
        folder: of the checkpoints.
        like: a state of the same shapes.
    """
    clear_unfinished(folder)
    for step in reversed(checkpoint_steps(folder)):
        try:
            return Checkpoint(step, read_checkpoint(folder, step, like))
        except ValueError as error:
            warnings.warn(f"{error} It is removed.", UserWarning, stacklevel=2)
            shutil.rmtree(folder / str(step))
    return None


def checkpoint_steps(folder: Path) -> list[int]:
    """The steps of the checkpoints, increasing."""
    names = (path.name for path in folder.iterdir() if path.is_dir()) if folder.is_dir() else ()
    return sorted(int(name) for name in names if name.isdecimal())


def keep_checkpoints(folder: Path, steps: Collection[int]) -> None:
    """Removes all checkpoints but those of `steps`."""
    for step in set(checkpoint_steps(folder)) - set(steps):
        shutil.rmtree(folder / str(step))


def clear_unfinished(folder: Path) -> None:
    """Removes what a write left that was cut short."""
    for path in folder.iterdir() if folder.is_dir() else ():
        if not path.name.isdecimal():
            shutil.rmtree(path, ignore_errors=True)
