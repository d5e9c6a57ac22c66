"""Figures and tables: what the simulation scripts share."""
