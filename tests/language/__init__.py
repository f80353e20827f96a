"""Tests of the language: SQL texts and what they are bound to."""
