"""How far a profile, a binary or a host can be trusted, as findings with advice."""
