"""Hoyt et al. (2022): chance levels and adjusted metrics."""
