"""Tests of routing: policies, orders, and the answers they must not change."""
