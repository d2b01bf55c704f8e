"""What holds when nothing else is asked for.  Imports nothing: the command line reads it for its help."""

FREQUENCY_HZ = 99
WINDOW_S = 60.0
