"""Stores of the two servers, behind one interface each, on SQLite or PostgreSQL; no cryptography, and no key."""
