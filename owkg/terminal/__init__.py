"""Terminal output: progress, tables and notes."""
