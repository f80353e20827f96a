"""The eddy: decides what to do next, and does nothing itself.

Takes clauses, and observations of the operators. Holds counts.
Gives the operator that a block of tuples visits next; the order in which a clause's factors are evaluated.
Does not know tuples, how an operator works, the clock, Spark. Random generators are passed in.

* `routing.py`, `operators.py`: where tuples go (CACQ §2); `policies.py`, `tickets.py`: routing policies (CACQ §3)
* `statistics.py`: counts of observations; `orders.py`: the best and worst order, for comparison
* `join_order.py`: which side of a join comes next; `join_routing.py`: the SteMs and conditions that new tuples of
  followed joins visit
* `factor_order.py`: the order of one clause's factors; `materializing.py`: eager or lazy; `join_demand.py`:
  which joins are kept; `costly_factors.py`: where user functions are called
"""

from tureen.eddy.factor_order import order_factors
from tureen.eddy.operators import Flow, Operator, grouped_filters, operator_name
from tureen.eddy.orders import Work, best_order, expected_work, independent, rank_order, shared, worst_order
from tureen.eddy.policies import Fixed, Policy, Random, optimal, worst
from tureen.eddy.routing import Eddy, Lineage
from tureen.eddy.statistics import Observation, Profile, Statistics, Tally
from tureen.eddy.tickets import Tickets, consumed, eliminated, weighted

__all__ = [
    "Eddy",
    "Fixed",
    "Flow",
    "Lineage",
    "Observation",
    "Operator",
    "Policy",
    "Profile",
    "Random",
    "Statistics",
    "Tally",
    "Tickets",
    "Work",
    "best_order",
    "consumed",
    "eliminated",
    "expected_work",
    "grouped_filters",
    "independent",
    "operator_name",
    "optimal",
    "order_factors",
    "rank_order",
    "shared",
    "weighted",
    "worst",
    "worst_order",
]
