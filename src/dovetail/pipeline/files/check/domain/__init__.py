"""What the private column may hold: categories or bounds, whether they fit, and how much noise they cost."""
