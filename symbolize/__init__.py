"""From (DSO, file offset) to functions, files and lines."""
