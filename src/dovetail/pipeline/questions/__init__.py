"""Several questions about several columns in one run: all of them, in one report, or one for each person."""
