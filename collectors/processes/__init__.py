"""Programs as processes: started at a gate, watched, measured, and ended with everything that they started."""
