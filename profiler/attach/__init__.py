"""Sessions that profile processes which run already, window after window."""
