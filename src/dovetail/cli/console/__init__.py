"""What the verbs share: options, printing and files."""
