"""Aggregates and step windows over a year of real flights, compared with DuckDB."""
