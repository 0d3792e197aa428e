"""All roles in one process under a frozen clock, with everything that goes wrong in a real fleet."""
