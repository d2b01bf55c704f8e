"""The agents that the aggregator knows: what each said of itself, and what becomes of one that falls silent."""
