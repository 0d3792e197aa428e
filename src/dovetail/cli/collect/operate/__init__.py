"""What operators and owners do to a collection that runs: who may send and ask, what is given up, how it goes on."""
