"""Closed worlds as witnesses: models measured on sparse and on full test sets along their training."""
