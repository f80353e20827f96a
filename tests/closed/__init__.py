"""Closed sets against the plain twin."""
