"""Independent tasks on a Dask cluster or in processes of this machine."""

import hashlib
import ipaddress
import os
import platform
import sys
import uuid
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple, TypeVar

from owkg.errors import ArgumentError

_T = TypeVar("_T")
# Seconds to wait for an answer of the scheduler and for its first worker.
TIMEOUT_S = 10.0
# Number of workers that may die during a task before owkg gives it up.
_DEATHS = 5
_TOPIC = "owkg-progress"
_LOOPBACK = "127.0.0.1"
# Packages whose versions may change a result.
_PACKAGES = ("owkg", "jax", "jaxlib", "numpy", "polars", "optax")


class Where(NamedTuple):
    """Place to run tasks.

    Attributes:
        scheduler: address of a Dask scheduler, such as tcp://host:8786. None: processes of this machine.
        workers: number of processes of this machine.
    """

    scheduler: str | None = None
    workers: int = 1


def where(scheduler: str | None, workers: int | None) -> Where | None:
    """Place to run tasks from two options; None: this process.

    Raises:
        ValueError: if both are given, or `workers` is below 1.
    """
    if scheduler is not None and workers is not None:
        raise ArgumentError("workers", "has no effect with --scheduler, which has its own workers.")
    if workers is not None and workers < 1:
        raise ArgumentError("workers", f"must be at least 1, got {workers}.")
    return None if scheduler is None and workers in (None, 1) else Where(scheduler, workers or 1)


def check_scheduler(place: Where | None) -> None:
    """Raises ArgumentError if a given scheduler does not answer or has no workers."""
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

    If the worker of a task dies, the task starts again on another worker, so `function` must continue from
    what it has written to its folder. On workers that offer the resource GPU, each task takes one GPU.
    Leaving early, for example by Ctrl-C, cancels tasks that have not started.

    Args:
        function: function that workers can import.
        tasks: arguments of each call; small, such as paths and numbers.
        place: place to run the tasks.
        folder: folder that all workers must see; it is made when the scheduler answers.
        on_progress: function called with (task, done, total, note) when a task calls `told`.
        on_done: function called with (task, result) when a task is complete.

    Raises:
        ValueError: if Dask is not installed, the scheduler does not answer or has no workers, a worker has
            other versions or does not see `folder`, or too many workers died during one task.
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
                        f"{folder}: {_DEATHS + 1} workers died, one after another, while running task "
                        f"{i + 1} of {len(tasks)}; too little memory is the usual reason."
                    ) from None
                if on_done:
                    on_done(i, found[i])
        finally:
            client.cancel([future for future in futures if not future.done()])
            client.unsubscribe_topic(_TOPIC)
    return [found[i] for i in range(len(tasks))]


def told(done: int, total: int, note: str = "") -> None:
    """Reports, inside a task, how much of it is done; has no effect elsewhere."""
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
    """Whether a host, by name or address, is this machine and cannot be reached from other machines."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _security(distributed: ModuleType) -> Any:
    """Keys of this run alone; without them any user of this machine could have the workers run code."""
    if find_spec("cryptography") is None:
        warnings.warn(
            "other users of this machine can reach the workers, because the package cryptography is not "
            "installed: `pip install 'owkg[cluster]'`.",
            stacklevel=2,
        )
        return None
    return distributed.Security.temporary()


def _warn_of_network(distributed: ModuleType, scheduler: str) -> None:
    """Warns if messages to a scheduler, including code, cross a network without encryption."""
    host = distributed.comm.get_address_host(scheduler)
    if not scheduler.startswith("tls://") and not is_loopback(host):
        warnings.warn(
            f"the scheduler {scheduler} has neither encryption nor authentication: whoever reaches its "
            "port can run code on its workers. Addresses of tls:// are safe (distributed.comm.tls).",
            stacklevel=2,
        )


@contextmanager
def _client(distributed: ModuleType, place: Where) -> Iterator[Any]:
    """Client of the scheduler, or of a new one with processes of this machine."""
    from dask import config

    if place.scheduler is None:
        options = {"distributed.scheduler.allowed-failures": _DEATHS}
        with config.set(options), ExitStack() as held:
            try:
                local = distributed.LocalCluster(
                    n_workers=place.workers, threads_per_worker=1, dashboard_address=None, memory_limit=None,
                    silence_logs=50, host=_LOOPBACK, security=_security(distributed),
                    scheduler_kwargs={"dashboard_address": f"{_LOOPBACK}:0"},  # a free port, not 8787
                )  # fmt: skip
                client = held.enter_context(
                    distributed.Client(held.enter_context(local), set_as_default=False)
                )
            except (RuntimeError, OSError) as error:
                why = str(error).partition("\n")[0].removesuffix(".")
                raise ArgumentError(
                    "workers",
                    f"cannot be started: {why}; too little memory or too few open files may be why.",
                ) from None
            yield client
        return
    try:
        # A client without an address or its keys would report this again when it is collected.
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
                    raise ValueError(f"worker {address}: must have {package} {number} as here, got {other}.")
            if not one.seen:
                raise ValueError(
                    f"worker {address}: does not see {folder.absolute()}; all must share a file system."
                )
    finally:
        sign.unlink(missing_ok=True)


class _Looked(NamedTuple):
    """Findings of a worker: versions by package, and whether it sees a file."""

    versions: dict[str, str]
    seen: bool


def _looked(sign: str, packages: tuple[str, ...]) -> _Looked:
    """Versions and source checksums of packages, and whether the file `sign` exists."""
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
    """First twelve digits of the SHA-256 of the source files of a package; equal for all single modules."""
    digest = hashlib.sha256()
    with suppress(ImportError, ValueError):
        for root in ((spec := find_spec(package)) and spec.submodule_search_locations) or ():
            for file in sorted(Path(root).rglob("*.py")):
                digest.update(file.relative_to(root).as_posix().encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()[:12]
