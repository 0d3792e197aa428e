"""Sections of a report about memorization, one file each; a file, or an entry point `dovetail.sections`, adds one."""
