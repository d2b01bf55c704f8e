"""Orders as an agent takes them: one rule for the aggregator that gives them and the agent that carries them out."""
