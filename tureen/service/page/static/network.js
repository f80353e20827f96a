// The network: which streams are derived from which, and the peers of this server.

import {get} from "./api.js";
import {bytes, count, el, every, replace} from "./dom.js";
import {drawGraph} from "./graph.js";
import {mentions} from "./streams.js";
import {dataTable} from "./table.js";

export function show(main, {session}) {
  const graph = el("div"), peers = el("div");
  replace(main, el("h1", {}, "Network"), el("h2", {}, "Streams of this pot"), graph, el("h2", {}, "Peers"), peers);
  return every(2000, async () => {
    const [{streams}, status, {peers: known}] = await Promise.all([get("/v1/streams", {limit: 1000}), get("/v1/status"), {peers: []}]);
    const nodes = streams.map((stream) => {
      const numbers = status.streams[stream.name] ?? {};
      return {id: stream.name, title: stream.name, link: `#/streams/${encodeURIComponent(stream.name)}`, style: stream.error ? "bad" : stream.query ? "accent" : null,
        lines: [`${count(numbers.rows)} tuples`, numbers.rows_per_second !== undefined && `${numbers.rows_per_second} rows per second`, numbers.unread_tuples && `${count(numbers.unread_tuples)} tuples behind`, stream.source && `from ${stream.source.format}`].filter(Boolean)};
    });
    const edges = streams.filter((stream) => stream.query).flatMap((stream) =>
      streams.filter((other) => other !== stream && mentions(stream.query, other.name)).map((other) => [other.name, stream.name]));
    for (const peer of known) {
      nodes.push({id: `peer ${peer.name}`, title: peer.name, style: peer.state === "away" ? "bad" : null, lines: [peer.url, peer.state].filter(Boolean)});
      for (const link of peer.links ?? []) edges.push([`peer ${peer.name}`, link.stream, link.bytes !== undefined ? bytes(link.bytes) : ""]);
    }
    replace(graph, nodes.length ? el("div", {class: "scroll"}, drawGraph(nodes, edges, "streams and what they are derived from")) : el("p", {class: "soft"}, "There are no streams yet."));
    replace(peers, known.length ? dataTable([{name: "name"}, {name: "url"}, {name: "state"}], known, {caption: "peers"}) : el("p", {class: "soft"}, "This server has no peers."));
  });
}
