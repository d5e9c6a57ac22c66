"""What a metric is: registry of names, measures, tie rules, chance levels, values by sampled negatives."""
