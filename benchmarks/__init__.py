"""Benchmarks: ratios of values measured in the same run; results are verified before they are timed."""
