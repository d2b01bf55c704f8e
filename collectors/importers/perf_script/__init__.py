"""The text that `perf script` prints, in every layout that its -F option and its versions make."""
