"""Captures and debug files on their way to the aggregator."""
