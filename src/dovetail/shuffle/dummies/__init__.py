"""Dummies: reports of nobody that the shuffler adds to every symbol, in numbers that hide each person's report."""
