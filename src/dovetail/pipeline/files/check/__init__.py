"""Everything that is wrong with a table, at once: how it is written, who stands in it, what its columns hold."""
