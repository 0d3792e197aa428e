"""Does a model repeat its data: empirical tests of copying and of memorization, which promise nothing."""
