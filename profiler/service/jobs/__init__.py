"""The jobs of all agents: checked when they are ordered, kept until they are finished, lost when their agent falls silent."""
