"""What may be promised: theorems turned into numbers that round against us."""
