"""From scores to ranks: kernels, filters as sets of entities, ties, orders of sorts."""
