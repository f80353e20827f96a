"""Tests of `tureen/results/templates`."""
