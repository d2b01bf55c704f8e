"""agent.toml: what the owner of a host allows."""
