"""Share of answers that the test set keeps, from the density of a sampled knowledge graph."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from owkg import checks


def test_share(density: ArrayLike, train_rate: ArrayLike) -> Any:
    """alpha = d (1 - t) / (1 - d t), the share of full-test answers that are also sparse-test answers.

    Each fact of the closed world survives with probability d, and a share t of the survivors is used for
    training. The full test is every fact outside the training set, a share 1 - d t of all facts. A share
    d (1 - t) survived and forms the sparse test. The sparsity is 1 - alpha.

    Args:
        density: d, share of all facts that the sampled graph keeps, in (0, 1].
        train_rate: t, share of the kept facts that go to the training set, in [0, 1).

    Raises:
        ValueError: if an argument is out of range.

    Examples:
        >>> round(float(test_share(0.75, 0.7)), 4)
        0.4737

    References:
        Yang, Lin, Zhang (NeurIPS 2022): d and alpha of section 6, related as in their released sampling code.
    """
    density = checks.real("density", density, 0, 1)
    checks.require("density", density, density > 0, "in (0, 1]")
    train_rate = checks.real("train_rate", train_rate, 0, 1)
    checks.require("train_rate", train_rate, train_rate < 1, "in [0, 1)")
    checks.common_shape(density=density, train_rate=train_rate)
    sparse = density * (1 - train_rate)
    # 1 - d t, without cancellation if both are close to 1.
    full = (1 - density) + sparse
    return np.asarray(sparse / full)[()]
