"""Jobs on this host: orders checked, each carried out in a process of its own, watched and reported."""
