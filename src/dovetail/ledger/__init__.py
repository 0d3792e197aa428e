"""The private ledger of what was released about whom; files that are whole or not there; nothing is drawn here."""
