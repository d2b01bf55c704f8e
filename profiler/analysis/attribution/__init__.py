"""From captures to costs: symbols applied, logical stacks, phases, one category a sample, sums."""
