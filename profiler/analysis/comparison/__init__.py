"""Arms held against each other: replicates, families of rows, verdicts, gains, controls, ladders."""
