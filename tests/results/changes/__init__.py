"""Tests of `tureen/results/changes`."""
