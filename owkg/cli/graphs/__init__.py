"""Commands about graphs: statistics, closed worlds, open worlds sampled from them, chance levels."""
