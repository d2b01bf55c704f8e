"""The aggregator: agents, jobs, uploads, experiments over hosts, and pages to look at them."""
