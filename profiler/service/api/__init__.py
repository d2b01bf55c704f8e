"""The aggregator over HTTP: the application, its routes as JSON, limits, errors, health."""
