"""What an agent keeps on disk: captures until the aggregator has them, and what it remembers over its own end."""
