"""What a plan means: why it recommends what it does, and what is left when people lie or stay away."""
