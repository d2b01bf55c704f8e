"""Reports as pieces of HTML: no scripts, no styles, no page around them.  What is foreign is escaped in ``elements`` alone."""
