"""The `owkg` command, one file a sub-command: parse, call the library, print."""
