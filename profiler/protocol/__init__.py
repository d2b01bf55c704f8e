"""What agents and the aggregator say to each other: values, and where they are sent."""
