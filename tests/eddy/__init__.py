"""Tests of routing: policies, orders, and answers that do not depend on them."""
