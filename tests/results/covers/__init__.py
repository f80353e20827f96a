"""Tests of `tureen/results/covers`."""
