"""Speed and memory, each against a named baseline or limit in the same run."""
