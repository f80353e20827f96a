"""Tests of `tureen/results`."""
