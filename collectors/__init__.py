"""Everything that runs on a target host."""
