"""The figure of "Why incomplete tests mislead": a grid that `owkg.theory` computes when the site is built."""

import json
import logging

import numpy as np

from owkg import openworld, theory

STRENGTHS = np.arange(1, 20) / 20
SPARSITIES = np.arange(1, 10) / 10
ANSWERS = np.array([1, 2, 5, 10, 20, 50])
CORRELATIONS = np.array([-0.2, -0.1, 0.0, 0.1, 0.2])
ENTITIES = 14_505
_COMPLETE = 1e-9  # a sparsity that is as good as none


def grid() -> dict[str, object]:
    """Mean and variance of MRR by strength, sparsity, answers and correlation.

    Returns:
        The axes, and flat lists in their order: `mean`, `variance`, null where no model of that strength has
        that correlation; `complete`, the mean on the complete test by strength and answers.
    """
    axes = np.meshgrid(STRENGTHS, SPARSITIES, ANSWERS, CORRELATIONS, indexing="ij")
    strength, sparsity, answers, correlation = axes
    low, high = openworld.feasible_correlation(strength, sparsity)
    possible = (correlation >= low) & (correlation <= high)
    mean, variance = theory.moments(
        "mrr",
        strength=strength,
        sparsity=sparsity,
        num_answers=answers,
        num_entities=ENTITIES,
        correlation=np.where(possible, correlation, 0.0),
    )
    complete = theory.expectation(
        "mrr", strength=STRENGTHS[:, None], sparsity=_COMPLETE, num_answers=ANSWERS, num_entities=ENTITIES
    )

    def listed(values: np.ndarray) -> list[float | None]:
        digits = (float(f"{x:.5g}") for x in values.ravel())
        return [x if ok else None for x, ok in zip(digits, possible.ravel(), strict=True)]

    return {
        "strength": STRENGTHS.tolist(),
        "sparsity": SPARSITIES.tolist(),
        "answers": ANSWERS.tolist(),
        "correlation": CORRELATIONS.tolist(),
        "mean": listed(mean),
        "variance": listed(variance),
        "complete": [float(f"{x:.5g}") for x in np.ravel(complete)],
    }


_SLIDERS = {
    "a": ("Strength of A", "strength", 13),
    "b": ("Strength of B", "strength", 12),
    "sparsity": ("Sparsity of the test", "sparsity", 3),
    "answers": ("Answers of a query", "answers", 3),
    "correlation": ("Correlation of A", "correlation", 2),
}


def text() -> str:
    """The figure as Markdown: sliders, a place for the chart and the sentence, and the grid."""
    logging.getLogger("jax").setLevel(logging.WARNING)  # Sphinx would print which devices JAX looked for
    numbers, sliders = grid(), []
    for name, (label, axis, at) in _SLIDERS.items():
        most = len(numbers[axis]) - 1  # pyright: ignore[reportArgumentType]
        sliders.append(
            f'<label><span>{label}</span><input type="range" data-name="{name}" data-axis="{axis}" min="0" '
            f'max="{most}" value="{at}"><output></output></label>'
        )
    return "\n".join(
        [
            "```{raw} html",
            '<div class="incomplete">',
            *sliders,
            '<svg viewBox="0 0 640 360" role="img" aria-label="MRR by strength"></svg>',
            '<p class="sentence" aria-live="polite"></p>',
            "<noscript>The figure needs JavaScript; the numbers are those of <code>owkg theory</code> and "
            "<code>owkg power</code>.</noscript>",
            f'<script type="application/json">{json.dumps(numbers, separators=(",", ":"))}</script>',
            "</div>",
            '<script src="../_static/incomplete.js" defer></script>',
            "```",
        ]
    )
