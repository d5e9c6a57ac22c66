"""Speed and memory, each compared with a named baseline or limit in the same run."""
