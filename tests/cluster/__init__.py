"""Executors in processes of their own, as on a cluster."""
