"""Errors of implied full-test metrics on closed worlds: how far to trust an audit."""
