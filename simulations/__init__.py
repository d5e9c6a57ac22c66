"""Reproductions of the five papers, one folder each: published numbers, presets, studies and figures."""

import sys

from owkg.terminal.process import begun

if sys.argv[0] == "-m":  # `python -m simulations.NAME` imports this file first
    begun(f"python -m {sys.orig_argv[sys.orig_argv.index('-m') + 1]}")
