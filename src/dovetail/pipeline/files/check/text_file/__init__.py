"""How a text file is written: its encoding, its separator, its header, and which of its rows are people."""
