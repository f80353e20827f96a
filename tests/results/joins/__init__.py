"""Tests of `tureen/results/joins`."""
