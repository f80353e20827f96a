"""What Tureen reaches, measured: ratios in one run, results verified before they are timed."""
