"""Tests of `tureen/results/rows`."""
