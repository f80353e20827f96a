"""Damaged files: every answer is right or an error, and what can be made again is."""
