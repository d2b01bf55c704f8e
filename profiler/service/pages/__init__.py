"""Pages to look at hosts, jobs, captures and comparisons with: views make values, templates show them, reports are rendered
elsewhere."""
