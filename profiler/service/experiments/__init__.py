"""Experiments over agents: their schedule, the rounds that carry it out, and what is told of them."""
