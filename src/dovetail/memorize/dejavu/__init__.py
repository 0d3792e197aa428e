"""Deja vu: does an encoder tell what only its training images could have taught it."""
