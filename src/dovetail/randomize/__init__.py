"""What happens on the device: one file per randomizer."""
