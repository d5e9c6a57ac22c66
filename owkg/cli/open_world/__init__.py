"""Commands of settings: closed forms, Monte Carlo, required queries."""
