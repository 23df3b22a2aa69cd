"""Doors to other people's training tools; nothing in this package imports them."""
