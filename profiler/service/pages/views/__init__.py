"""What pages show, worked out of what the aggregator knows: pure functions from values to values."""
