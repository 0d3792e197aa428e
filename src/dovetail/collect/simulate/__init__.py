"""All roles on one machine, with what goes wrong in a real fleet, and an audit; nothing that a collection runs."""
