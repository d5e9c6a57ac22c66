"""Estimates from few judgements, replayed on worlds whose answers are all known."""
