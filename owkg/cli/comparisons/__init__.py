"""Commands of several systems: comparison, stability, pools, missing answers, audits."""
