"""What `explain` and metrics say about the plan of a continuous join."""

from __future__ import annotations

from tureen.joining.planned_join import PlannedJoin
from tureen.joining.plans.plan_shape import part_of, parts_below, shown_shape

PLAN_COUNTS = (
    "trees",
    "plan_tuples",
    "intermediate_results",
    "shared_nodes",
    "suspended",
    "resumed",
    "blacklisted",
    "plan_purged",
    "blacklist_purged",
)


def describe_plan(planned: PlannedJoin) -> dict[str, object]:
    """The plan of a join, its states and what feedback did."""
    shown: dict[str, object] = {"plan": planned.plan, "chosen": "by cost" if planned.hint.plan is None else "by hint"}
    if planned.refused:
        shown["why"] = planned.refused
    number, tree = planned.forest.number_of(planned), planned.tree
    if number is None or tree is None:
        return shown
    root, counts = tree.roots[number], tree.counts[number]
    names = dict(zip(root.inputs, planned.names, strict=True))
    nodes = []
    for shape in parts_below(root.shape)[:-1]:
        node = tree.nodes[part_of(root.graph, shape)]
        nodes.append(
            {
                "node": shown_shape(shape, names),
                "tuples": node.size,
                "made": node.made,
                "avoided": None if tree.demands[number] is None else tree.avoided(root.graph, shape),
                "consumers": tree.consumers(root.graph, shape),
            }
        )
    return shown | {
        "shape": shown_shape(root.shape, names),
        "joins": len(tree.roots),
        "nodes": nodes,
        "bytes": tree.bytes,
        "intermediate_results": tree.made,
        "jit": {
            "on": tree.demands[number] is not None,
            "turns": tree.switch_turns,
            "suspended": counts.suspended,
            "resumed": counts.resumed,
            "purged": counts.unresumable,
            "blacklists": {}
            if tree.demands[number] is None
            else dict(zip(planned.names, tree.waiting(number), strict=True)),
        },
    }


def plan_counts(planned: PlannedJoin) -> dict[str, int]:
    """Numbers for metrics; those of a plan of several joins are counted for the first of them."""
    number, tree = planned.forest.number_of(planned), planned.tree
    if number is None or tree is None:
        return dict.fromkeys(PLAN_COUNTS, 0)
    counts = tree.counts[number]
    of_plan = (tree.tuples, tree.made, tree.shared) if number == 0 else (0, 0, 0)
    numbers = (
        1,
        *of_plan,
        counts.suspended,
        counts.resumed,
        sum(tree.waiting(number)),
        counts.purged,
        counts.unresumable,
    )
    return dict(zip(PLAN_COUNTS, numbers, strict=True))
