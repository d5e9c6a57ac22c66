"""Models measured during their training, on sparse and on full test sets of a closed world."""
