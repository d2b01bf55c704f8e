"""The conversation with the aggregator: requests, what they tell of its clock, and how long to wait when they fail."""
