"""Dummies: reports of nobody that the shuffler adds to every symbol, so that it hides the counts instead of people."""
