"""Numbers right to the last place: special functions, rounding, geometric draws and compiled loops; no privacy."""
