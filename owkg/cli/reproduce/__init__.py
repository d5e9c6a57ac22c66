"""`owkg reproduce`: the figures of Yang et al. (2022), redrawn and carried further."""
