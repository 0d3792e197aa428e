"""Documents as a whole: rehearsals, releases through the ledger, and releases into a shuffled collection."""
