"""What was released about whom: the private ledger, and files that are whole or not there; nothing is drawn here."""
