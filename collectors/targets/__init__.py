"""Processes that run already: how they are named, found, and told apart from what starts and ends beside them."""
