"""Pure analysis of captures: symbols applied, phases, attribution, costs, comparison (layer 1)."""
