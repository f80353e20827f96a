"""User functions of a pot: create, drop, list."""

from __future__ import annotations

from typing import Any

from tureen.errors import InvalidFunction
from tureen.faults import crash_point
from tureen.functions import function_workers
from tureen.functions.function_costs import costs
from tureen.functions.function_limits import START_SECONDS
from tureen.functions.function_workers import CallExpired, WorkerFailed
from tureen.functions.user_function import UserFunction
from tureen.language.binding.calls import NAMES
from tureen.language.binding.user_functions import check_free_name
from tureen.language.text.called_functions import calls_function
from tureen.pot.catalog import Catalog, take_seq
from tureen.pot.functions import StoredFunction, add_function, list_functions, remove_function
from tureen.window import from_micros


class Functions:
    """The user functions of one pot."""

    def __init__(self, catalog: Catalog) -> None:
        """Read and change them in that catalog."""
        self._catalog = catalog

    def create(self, function: UserFunction, owner: str, *, replace: bool = False) -> None:
        """Add a function, which a process that knows only its definition must be able to load."""
        check_free_name(function.name, frozenset(NAMES))
        try:
            function_workers.pool.check(function)
        except WorkerFailed as error:
            raise InvalidFunction(
                str(error), hint="the module must be importable by the process that evaluates queries"
            ) from None
        except CallExpired:
            raise InvalidFunction(
                f"function {function.name} was not loaded within {START_SECONDS:g} seconds",
                hint="do less when its module is imported",
            ) from None
        crash_point("function.before_commit")
        with self._catalog.write() as tx:
            take_seq(tx)
            add_function(tx, function, owner, calls_function, replace=replace)
            crash_point("function.in_commit")
        crash_point("function.after_commit")

    def drop(self, name: str) -> None:
        """Remove a function that no query calls."""
        with self._catalog.write() as tx:
            take_seq(tx)
            remove_function(tx, name, calls_function)

    def describe(self) -> list[dict[str, Any]]:
        """The functions in order of creation, with what this process observed of them."""
        with self._catalog.read() as tx:
            stored = list_functions(tx)
        return [_description(entry) for entry in stored]


def _description(stored: StoredFunction) -> dict[str, Any]:
    function, cost = stored.function, costs.of(stored.function.digest)
    return {
        "name": function.name,
        "arguments": ", ".join(argument.sql for argument in function.arguments),
        "returns": function.returns.sql,
        "vectorized": function.vectorized,
        "source": function.source,
        "path": function.path,
        "owner": stored.owner,
        "created_at": from_micros(stored.created_at),
        "calls": cost.calls,
        "seconds": cost.seconds,
        "errors": cost.errors,
    }
