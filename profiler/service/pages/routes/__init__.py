"""The pages' addresses: what is read for each, and which template shows it."""
