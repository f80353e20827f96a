"""Tests of partial aggregates."""
