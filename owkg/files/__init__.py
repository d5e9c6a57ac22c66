"""Files: whole or not at all, text with its line numbers, delimited tables, Parquet."""
