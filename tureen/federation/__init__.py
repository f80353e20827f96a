"""Federation: streams that live at other servers, received where queries over them are registered.

Takes a pot's catalog, inbox and invoker, and connections to peers. Holds the links over which this server receives.
Gives remote streams and replicas to queries, and flows of shared streams to peers.
Does not know HTTP or Spark: connections are a protocol.

* `flow.py`: the tuples or partial aggregates of a stream that a peer is asked for; `frame.py`, `frame_punctuations.py`:
  rows and punctuations on the wire
* `neighbour.py`: a peer as this server calls it; `askers.py`: the servers that wait for its answer
* `flow_source.py`, `flow_reader.py`, `flow_punctuations.py`: the side that sends; `increments.py`: partial aggregates
* `flow_serving.py`: what a peer may see
* `sent_flows.py`, `peer_quota.py`: what is being sent, and how much of it a peer may have; `federation_settings.py`
* `link_intake.py`, `link_run.py`: the side that receives, exactly once; `local_neighbour.py`: from within the process
* `remote_lookup.py`: a stream among those that peers share
* `needs.py`: what an input of a query needs of a remote stream; `placement.py`: from where it is received
* `network_placement.py`, `network_planner.py`: from where rows are received, planned together with the peers
* `peer_requests.py`, `peer_messages.py`: the messages by which they plan; `stream_sampling.py`: how much it transports
* `narrowing.py`: flows that have more than is needed any more
* `network_view.py`: the network as people see it
* `borrowing.py`: replicas of queries that are not registered
* `peering.py`: the peers, and whether they answer; `federation.py`: all of it, for one server; `listing.py`: for people
"""
