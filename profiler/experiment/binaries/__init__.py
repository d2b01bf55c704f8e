"""Builds of an experiment, and what its programs allow."""
