"""Sharing: which streams that exist already can answer a query, and where in a network it is evaluated.

Takes bound queries, clauses, and statistics of streams. Holds the properties of streams that exist.
Gives implication between clauses, streams that cover a query, and evaluation plans in a network of peers.
Does not know Spark, the catalog, HTTP, or the clock.

* `difference_graph.py`: constraints between integers, by shortest paths; `order_groups.py`: values as such integers
* `conjunction.py`, `implication.py`: whether one clause implies another
* `properties.py`, `step_windows.py`: what a query needs and what a stream has; `covering.py`: which has what is needed
* `selection_text.py`: the SQL in which peers ask each other for rows of a stream
* `partial_rows.py`: partial aggregates as rows, and queries over them
* `stream_index.py`: the streams that cover a query, out of thousands
* `topology.py`, `network_cost.py`, `network.py`: peers, the cost of a plan, the streams that flow
* `planning.py`, `widening.py`, `subnets.py`: the plan for a new query
* `peer_network.py`: a network from the reports of its peers, and a plan as what each peer receives
* `sampled_rates.py`: rates of streams from their newest rows
* `measured_rates.py`, `photon_sample.py`, `simulation.py`, `network_picture.py`: a network in simulation
"""

from tureen.sharing.implication import Implication, implies, minimal_clause, satisfiable
from tureen.sharing.properties import Properties, properties_of
from tureen.sharing.stream_index import StreamIndex

__all__ = [
    "Implication",
    "Properties",
    "StreamIndex",
    "implies",
    "minimal_clause",
    "properties_of",
    "satisfiable",
]
