"""Local randomizers, which run on the device, one file each."""
