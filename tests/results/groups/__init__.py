"""Tests of `tureen/results/groups`."""
