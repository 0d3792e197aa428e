"""The privacy report on a terminal and as one HTML page."""
