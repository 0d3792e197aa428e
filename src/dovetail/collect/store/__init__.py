"""What the two servers keep, behind one interface each, on SQLite or PostgreSQL; no cryptography, and no key."""
