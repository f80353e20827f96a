"""What the process loads that killed processes are forked from: the modules of all crash tests, and the kernels."""

from __future__ import annotations

from tests.crash import pending_pot, test_planned_join_kill, test_table_kill, test_template_kill, workload
from tureen import matching
from tureen.aggregates import aggregate_warming

LOADED = (pending_pot, test_planned_join_kill, test_table_kill, test_template_kill, workload)
"""Modules that are imported for what they load."""

matching.warm_up()
aggregate_warming.warm_up()
