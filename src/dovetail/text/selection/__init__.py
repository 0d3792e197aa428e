"""How one candidate is selected: each rule draws from its published law by whole numbers alone."""
