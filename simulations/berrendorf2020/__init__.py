"""Berrendorf et al. (2020): the ambiguity of ranks in link prediction and entity alignment."""
