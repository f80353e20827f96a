"""Tests of `tureen/results/following`."""
