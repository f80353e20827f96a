"""The schema of the catalog: all tables, and the triggers on them."""

from __future__ import annotations

from tureen.pot import catalog_tables, join_tables, peer_tables, template_tables

TABLE_MODULES = (catalog_tables, join_tables, peer_tables, template_tables)
"""The modules that define tables; each adds its own to `all_tables` when it is imported."""

all_tables = catalog_tables.metadata

_TRIGGERS = {
    "query_changed": "UPDATE ON queries",
    "query_gone": "DELETE ON queries",
    "clause_changed": "UPDATE OF number, error ON clauses WHEN (OLD.number, OLD.error) IS NOT (NEW.number, NEW.error)",
    "template_changed": "UPDATE ON templates",
    "template_gone": "DELETE ON templates",
    "member_gone": "INSERT ON gone_members",
    "members_changed": "UPDATE ON template_heads",
}
"""The changes that invalidate a reader's cache of standing queries, by the name of the trigger that counts them.

New queries are not among them: no cache can hold them, so registrations do not invalidate the others.
"""

TRIGGER_STATEMENTS = {
    name: f"CREATE TRIGGER {name} AFTER {change} BEGIN UPDATE standing SET version = version + 1; END"
    for name, change in _TRIGGERS.items()
}
"""The statement that creates each trigger."""

STANDING_ROW = "INSERT OR IGNORE INTO standing (id, version) VALUES (1, 0)"
"""Creates the row that the triggers count in, unless it exists."""
