"""Category rules: loading, validation and matching (layer 1)."""
