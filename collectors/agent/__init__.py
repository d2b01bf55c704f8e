"""The daemon on a target host: carries out the jobs that its own file allows, and uploads what they captured."""
