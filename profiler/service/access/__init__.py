"""Who may do what: tokens, their scopes, and the check of every request."""
