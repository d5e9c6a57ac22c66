"""Random order of the entities, drawn in parts, with the clock of each place."""

import numpy as np
from jaxtyping import Float, Int


class RandomOrder:
    """Entities in random order without replacement, with the order statistics of as many uniform numbers.

    Only the requested places are drawn, so the beginning of an order of millions costs little.
    """

    def __init__(self, rng: np.random.Generator, size: int) -> None:
        self._rng, self._size = rng, size
        self._drawn, self._left, self._log = np.empty(0, np.int64), None, 0.0

    def __len__(self) -> int:
        return len(self._drawn)

    def next(self, width: int) -> tuple[Int[np.ndarray, "width"], Float[np.ndarray, "width"]]:
        """(Entities, increasing clocks in (0, 1)) of the next `width` places; at most as many as are left."""
        begin = len(self._drawn)
        if self._left is None and 2 * (begin + width) > self._size:
            self._left = self._rng.permutation(np.setdiff1d(np.arange(self._size), self._drawn))
        if self._left is None:
            found = self._fresh(width)
        else:
            found, self._left = self._left[:width], self._left[width:]
        self._drawn = np.concatenate([self._drawn, found])
        # 1 - u of the next place is 1 - u of the place before, times a uniform number to the power 1/left.
        steps = np.log1p(-self._rng.random(width)) / (self._size - begin - np.arange(width))
        logs = self._log + np.cumsum(steps)
        self._log = float(logs[-1]) if width else self._log
        return found, -np.expm1(logs)

    def skip_to(self, place: int) -> None:
        """Draws all places before `place`."""
        if place > len(self._drawn):
            self.next(place - len(self._drawn))

    def _fresh(self, width: int) -> np.ndarray:
        """Entities not drawn yet; more than half of all must be left."""
        found = np.empty(0, np.int64)
        while len(found) < width:
            more = self._rng.integers(self._size, size=2 * (width - len(found)) + 8)
            more = more[~np.isin(more, self._drawn) & ~np.isin(more, found)]
            _, first = np.unique(more, return_index=True)
            found = np.concatenate([found, more[np.sort(first)]])
        return found[:width]
