"""What a plan means: why it recommends what it does, what it would take instead, and what lies and absence leave."""
