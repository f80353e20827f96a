"""Format 7 to 8: one step of several parts, each in a module of its own.

Also, run files may have key indexes behind the cells. Those of format 7 have none, and are read as they are.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path

from tureen.migration.federation_columns import add_federation
from tureen.migration.item_column import add_items
from tureen.migration.join_plan_columns import add_join_plans
from tureen.migration.needed_columns import add_needs
from tureen.migration.punctuate_column import add_punctuate

PARTS = (add_items, add_join_plans, add_punctuate, add_federation, add_needs)


def to_format_8(root: Path, database: sqlite3.Connection) -> None:
    """Run all parts."""
    for part in PARTS:
        part(root, database)
