"""How precisely float32 matrices are multiplied."""

import jax

# Accelerators otherwise round float32 to fewer bits, and make ties and other ranks of it.
HIGHEST = jax.lax.Precision.HIGHEST
