"""What a query says about how its join is to be computed while it is followed."""

from __future__ import annotations

from typing import NamedTuple

from tureen.errors import TureenError, shown

EDDY, LEFT_DEEP, BUSHY = PLANS = ("eddy", "left-deep", "bushy")


class PlanHint(NamedTuple):
    """The plan of a followed join, and whether tuples without partners are suspended; None is chosen by cost."""

    plan: str | None = None
    jit: bool | None = None

    @property
    def has_tree(self) -> bool:
        """Whether it asks for a plan with intermediate results."""
        return self.plan in (LEFT_DEEP, BUSHY) or (self.plan is None and self.jit is True)


NO_HINT = PlanHint()


def check_plan_hint(plan: object, jit: object) -> PlanHint:
    """A hint of a user; raises TureenError if there is no such plan.

    >>> check_plan_hint("bushy", None)
    PlanHint(plan='bushy', jit=None)
    >>> check_plan_hint("right-deep", None)
    Traceback (most recent call last):
    tureen.errors.TureenError: plan must be one of 'eddy', 'left-deep', 'bushy', got 'right-deep'

    The eddy has no intermediate results that could wait, so that `jit` has no effect with it:

    >>> check_plan_hint("eddy", True).has_tree
    False
    """
    if plan is not None and (not isinstance(plan, str) or plan not in PLANS):
        names = ", ".join(f"'{name}'" for name in PLANS)
        raise TureenError(f"plan must be one of {names}, got {shown(plan)}")
    if jit is not None and not isinstance(jit, bool):
        raise TureenError(f"jit must be True or False, got {shown(jit)}")
    return PlanHint(plan, jit)
