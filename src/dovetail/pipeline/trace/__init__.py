"""Location traces from files to files: reading, the private ledger, protecting, rehearsing an attack."""
