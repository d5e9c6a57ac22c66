"""How far implied full-test metrics are from the true ones on closed worlds: what of an audit to believe."""
