"""slotscope's aggregator and application.  Package initialisers import nothing."""
