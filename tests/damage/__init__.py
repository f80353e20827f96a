"""Damaged files: every answer is correct or an error, and derived data are computed again."""
