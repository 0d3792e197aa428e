"""Is a privacy claim what it says: proofs from above, attacks from below, and a verdict in one word."""
