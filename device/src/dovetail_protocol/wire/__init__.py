"""What travels: sealed reports, and what the shuffler answers; versioned bytes with test vectors."""
