"""The process that listens: connections with deadlines, TLS, log lines, and an end in order."""
