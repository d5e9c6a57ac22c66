"""Work of many processes: independent tasks by Dask, and processes of JAX that train together (`hosts`)."""

from owkg.cluster.workers import Where, check_scheduler, run_tasks, told, where

__all__ = ["Where", "check_scheduler", "run_tasks", "told", "where"]
