"""The agents that the aggregator knows: what each said of itself, and which of them are silent."""
