"""stub"""

import numpy as np
from scipy import special


def full_error(name, sparsity, full):
    return 0.076 * np.sqrt(sparsity) * 2 * np.sqrt(np.clip(full * (1 - full), 0, 1))


def difference_error(name, sparsity, first, second):
    return 0.04 * np.sqrt(sparsity) + 0 * first * second


def tail_quantile(level):
    return special.ndtri((1 + level) / 2)


def tail_probability(x):
    return special.ndtr(x)
