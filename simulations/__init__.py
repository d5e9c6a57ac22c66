"""The five papers, one folder each: published numbers, presets, studies, figures."""
