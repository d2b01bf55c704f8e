"""How processes are sampled when nothing else is asked for.  Imports nothing: the command line reads it for its help."""

FREQUENCY_HZ = 1999
# Of processes that go on with their work meanwhile.
ATTACHED_FREQUENCY_HZ = 99
WINDOW_S = 60.0
SHORTEST_WINDOW_S = 1.0
