"""Charts: inline SVG for the page, matplotlib figures for files."""
