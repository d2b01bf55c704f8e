"""Settings that people write in TOML: read with their types, and every mistake with its line."""
