"""The parts of the privacy report as words and tables, shared by every rendering."""
