"""What is wrong with a rule set: unreachable, overlapping, never matching and explosive rules."""
