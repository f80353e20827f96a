"""Sharing: implication, covering, plans in a network."""
