"""Tests of `tureen/results/snapshot`."""
