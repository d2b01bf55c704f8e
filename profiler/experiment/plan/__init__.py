"""What is to be done: plan files, checks, the order of runs; pure."""
