"""Running processes watched in windows."""
