"""What operators and owners do to a collection that runs: sign, close, admit, rotate, give up, hand over, audit."""
