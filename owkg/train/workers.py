"""Independent tasks on a cluster of Dask, or on processes of this machine."""

import hashlib
import ipaddress
import os
import platform
import sys
import uuid
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple, TypeVar

from owkg.errors import ArgumentError

_T = TypeVar("_T")
# Seconds in which a scheduler answers, and the first worker of it comes.
TIMEOUT_S = 10.0
# Workers that may die under a task before it is given up.
_DEATHS = 5
_TOPIC = "owkg-progress"
_LOOPBACK = "127.0.0.1"
# A difference in one of these may change a result.
_PACKAGES = ("owkg", "jax", "jaxlib", "numpy", "polars", "optax")


class Where(NamedTuple):
    """Where tasks run.

    Attributes:
        scheduler: address of a Dask scheduler, such as tcp://host:8786; None: processes of this machine.
        workers: how many processes of this machine.
    """

    scheduler: str | None = None
    workers: int = 1


def where(scheduler: str | None, workers: int | None) -> Where | None:
    """Where tasks run by two options; None: in this process.

    Raises:
        ValueError: if both are given, or `workers` is below 1.
    """
    if scheduler is not None and workers is not None:
        raise ArgumentError("workers", "has no effect with --scheduler, which has workers of its own.")
    if workers is not None and workers < 1:
        raise ArgumentError("workers", f"must be at least 1, got {workers}.")
    return None if scheduler is None and workers in (None, 1) else Where(scheduler, workers or 1)


def check_scheduler(place: Where | None) -> None:
    """ArgumentError where a scheduler that is named does not answer or has no workers."""
    if place is not None and place.scheduler is not None:
        with _client(_dask(), place):
            pass


def run_tasks(
    function: Callable[..., _T],
    tasks: Sequence[tuple[object, ...]],
    place: Where,
    folder: Path,
    *,
    on_progress: Callable[[int, int, int, str], None] | None = None,
    on_done: Callable[[int, _T], None] | None = None,
) -> list[_T]:
    """Results of `function(*task)` for every task, in their order.

    A task whose worker dies begins again on another one. So `function` must go on from what it left in its
    folder. On workers that offer the resource GPU, each task takes one. Leaving early, as by Ctrl-C, cancels
    what has not begun.

    Args:
        function: that workers can import.
        tasks: its arguments, small: paths and numbers.
        place: where.
        folder: that all workers must see; made when the scheduler answers.
        on_progress: told (task, done, total, note) of what `told` tells inside a task.
        on_done: told (task, result) when one has come to its end.

    Raises:
        ValueError: if Dask is not installed, the scheduler does not answer or has no workers, a worker has
            other versions or does not see `folder`, or too many workers died under one task.
    """
    distributed = _dask()
    with _client(distributed, place) as client:
        if place.scheduler is not None:
            _warn_of_network(distributed, place.scheduler)
        _require_alike(client, folder, ("owkg", function.__module__.partition(".")[0]))
        offered = [of.get("resources", {}) for of in client.scheduler_info(n_workers=-1)["workers"].values()]
        needs = {"GPU": 1} if any(of.get("GPU") for of in offered) else None

        def heard(event: tuple[float, dict[str, Any]]) -> None:
            told = event[1]
            if on_progress and told.get("of") == name:
                on_progress(told["task"], told["done"], told["total"], told["note"])

        name = uuid.uuid4().hex
        client.subscribe_topic(_TOPIC, heard)
        futures = {
            client.submit(
                _task, function, name, i, task, key=f"owkg-{name}-{i}", resources=needs, pure=False
            ): i
            for i, task in enumerate(tasks)
        }
        found: dict[int, _T] = {}
        try:
            for future in distributed.as_completed(futures, loop=client.loop):
                i = futures[future]
                try:
                    found[i] = future.result()
                except distributed.KilledWorker:
                    raise ValueError(
                        f"{folder}: {_DEATHS + 1} workers died, one after the other, while they were at task "
                        f"{i + 1} of {len(tasks)}; too little memory is the usual reason."
                    ) from None
                if on_done:
                    on_done(i, found[i])
        finally:
            client.cancel([future for future in futures if not future.done()])
            client.unsubscribe_topic(_TOPIC)
    return [found[i] for i in range(len(tasks))]


def told(done: int, total: int, note: str = "") -> None:
    """Tells, inside a task, how much of it is done; elsewhere nothing."""
    from distributed import get_worker

    with suppress(ValueError):
        worker = get_worker()
        of, task = getattr(worker, "_owkg_task", (None, 0))
        worker.log_event(_TOPIC, {"of": of, "task": task, "done": done, "total": total, "note": note})


def _task(function: Callable[..., _T], name: str, number: int, arguments: tuple[object, ...]) -> _T:
    from distributed import get_worker

    get_worker()._owkg_task = (name, number)  # type: ignore[attr-defined]
    return function(*arguments)


def _dask() -> ModuleType:
    try:
        import distributed
    except ImportError:
        raise ValueError("a cluster needs Dask: `pip install 'owkg[cluster]'`.") from None
    return distributed


def is_loopback(host: str) -> bool:
    """Whether a host, by name or address, is this machine and no other machine reaches it."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _security(distributed: ModuleType) -> Any:
    """Keys of this run alone: without them any user of this machine could have the workers run code."""
    if find_spec("cryptography") is None:
        warnings.warn(
            "other users of this machine can reach the workers, because the package cryptography is not "
            "installed: `pip install 'owkg[cluster]'`.",
            stacklevel=2,
        )
        return None
    return distributed.Security.temporary()


def _warn_of_network(distributed: ModuleType, scheduler: str) -> None:
    """Warns where what is told a scheduler, code included, goes through a network as it is."""
    host = distributed.comm.get_address_host(scheduler)
    if not scheduler.startswith("tls://") and not is_loopback(host):
        warnings.warn(
            f"the scheduler {scheduler} is neither encrypted nor does it ask who calls: whoever reaches its "
            "port can run code on its workers. Addresses of tls:// are safe (distributed.comm.tls).",
            stacklevel=2,
        )


@contextmanager
def _client(distributed: ModuleType, place: Where) -> Iterator[Any]:
    """A client of the scheduler, or of one that is made with processes of this machine."""
    from dask import config

    if place.scheduler is None:
        options = {"distributed.scheduler.allowed-failures": _DEATHS}
        with (
            config.set(options),
            distributed.LocalCluster(
                n_workers=place.workers, threads_per_worker=1, dashboard_address=None, memory_limit=None,
                silence_logs=50, host=_LOOPBACK, security=_security(distributed),
                scheduler_kwargs={"dashboard_address": f"{_LOOPBACK}:0"},  # a free port, not 8787
            ) as local,
            distributed.Client(local, set_as_default=False) as client,
        ):  # fmt: skip
            yield client
        return
    try:
        # A client without an address or its keys speaks of it when it is collected as well.
        distributed.comm.get_address_host_port(place.scheduler)
        security = distributed.Security()
        if place.scheduler.startswith("tls://") and not security.tls_client_cert:
            raise ValueError(
                "it needs the certificates that Dask's configuration names: distributed.comm.tls"
            )
        client = distributed.Client(
            place.scheduler, timeout=TIMEOUT_S, set_as_default=False, security=security
        )
    except (OSError, TimeoutError, ValueError, TypeError, RuntimeError) as error:
        words = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ArgumentError(
            "scheduler", f"must be the address of a Dask scheduler, got {place.scheduler}: {words}."
        ) from None
    with client:
        try:
            client.wait_for_workers(1, timeout=TIMEOUT_S)
        except TimeoutError:
            raise ArgumentError(
                "scheduler", f"must have workers, got {place.scheduler}, which has none."
            ) from None
        yield client


def _require_alike(client: Any, folder: Path, packages: tuple[str, ...]) -> None:
    """Raises ValueError, naming the worker, if one has other code or does not see the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    sign = folder.absolute() / f".{uuid.uuid4().hex}"
    sign.touch()
    try:
        own = _looked(str(sign), packages)
        for address, one in client.run(_looked, str(sign), packages, on_error="return").items():
            if isinstance(one, Exception):
                raise ValueError(f"worker {address}: cannot import owkg ({one}).")
            for package, number in own.versions.items():
                if one.versions[package] != number:
                    other = one.versions[package]
                    raise ValueError(f"worker {address}: has {package} {other}, and here is {number}.")
            if not one.seen:
                raise ValueError(
                    f"worker {address}: does not see {folder.absolute()}; all must share a file system."
                )
    finally:
        sign.unlink(missing_ok=True)


class _Looked(NamedTuple):
    """What a worker finds: versions by package, and whether a file is there."""

    versions: dict[str, str]
    seen: bool


def _looked(sign: str, packages: tuple[str, ...]) -> _Looked:
    """Versions, checksums of the source code of packages, and whether a file is there."""
    found = {"Python": platform.python_version()}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "of no version" if package in sys.modules else "not installed"
    for package in packages:
        found[f"source code of {package}"] = _checksum(package)
    return _Looked(found, os.path.exists(sign))  # noqa: PTH110


def _checksum(package: str) -> str:
    """Twelve digits of the SHA-256 of the source files of a package; a module by itself has none."""
    digest = hashlib.sha256()
    with suppress(ImportError, ValueError):
        for root in ((spec := find_spec(package)) and spec.submodule_search_locations) or ():
            for file in sorted(Path(root).rglob("*.py")):
                digest.update(file.relative_to(root).as_posix().encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()[:12]
