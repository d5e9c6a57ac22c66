"""Commands about models of known strength: closed forms, Monte Carlo, required queries."""
