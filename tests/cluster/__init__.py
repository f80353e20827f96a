"""Executors in separate processes, as on a cluster."""
