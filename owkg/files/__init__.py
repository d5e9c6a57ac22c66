"""File access: atomic writes, text with line numbers, delimited tables, Parquet."""
