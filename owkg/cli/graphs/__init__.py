"""Commands of graphs: what they hold, closed worlds, open worlds sampled from them, chance levels."""
