"""The benchmarks, small: that they run, and that what they time is right."""
