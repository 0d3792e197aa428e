"""How values show themselves: a line in a terminal, a small table in a notebook, a figure on request."""
