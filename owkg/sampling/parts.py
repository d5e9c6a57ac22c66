"""What becomes of a fact."""

# The part of each fact is the number of its name.
PARTS = ("train", "valid", "test_sparse", "missing")
TRAIN, VALID, SPARSE, MISSING = range(len(PARTS))
