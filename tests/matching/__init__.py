"""Tests of blocks, query runs and cells."""
