"""What is to be done: plan files, their checks, the order of runs."""
