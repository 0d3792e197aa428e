"""The reader in a browser: a table to its problems, a rehearsal and a report; two reports side by side."""
