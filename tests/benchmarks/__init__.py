"""The benchmarks at small sizes: they run, and their results are correct."""
