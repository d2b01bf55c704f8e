"""The profilers that are started beside a process: perf and py-spy, their arguments, their ends and their failures."""
