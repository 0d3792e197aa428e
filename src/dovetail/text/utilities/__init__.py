"""How good each candidate is for a document: whole numbers of bounded spread, one file for each utility."""
