"""Models and results of other libraries, converted to rank tables in one call."""

from owkg.interop import ogb, pykeen
from owkg.interop.states import LIBRARIES, embeddings_of_state, ranks_of_state, read_state

__all__ = ["LIBRARIES", "embeddings_of_state", "ogb", "pykeen", "ranks_of_state", "read_state"]
