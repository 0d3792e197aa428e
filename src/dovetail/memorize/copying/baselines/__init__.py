"""What others measure, with the right formulas, so that one sees what each misses: most are blind to copying."""
