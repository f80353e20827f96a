// The network: which streams are derived from which.

import {get} from "./api.js";
import {count, el, every, replace} from "./dom.js";
import {drawGraph} from "./graph.js";
import {mentions} from "./streams.js";
import {update} from "./update.js";

export function show(main) {
  const graph = el("div");
  replace(main, el("h1", {}, "Network"), graph);
  return every(2000, async (maxAge) => {
    const [{streams}, status] = await Promise.all([get("/v1/streams", {limit: 1000}, maxAge), get("/v1/status", {}, maxAge)]);
    const nodes = streams.map((stream) => {
      const numbers = status.streams[stream.name] ?? {};
      return {id: stream.name, title: stream.name, link: `#/streams/${encodeURIComponent(stream.name)}`, style: stream.error ? "bad" : stream.query ? "accent" : null,
        lines: [`${count(numbers.rows)} tuples`, numbers.rows_per_second !== undefined && `${numbers.rows_per_second} rows per second`, numbers.unread_tuples && `${count(numbers.unread_tuples)} tuples behind`, stream.source && `from ${stream.source.format}`].filter(Boolean)};
    });
    const edges = streams.filter((stream) => stream.query).flatMap((stream) =>
      streams.filter((other) => other !== stream && mentions(stream.query, other.name)).map((other) => [other.name, stream.name]));
    update(graph, nodes.length ? el("div", {class: "scroll"}, drawGraph(nodes, edges, "streams and what they are derived from")) : el("p", {class: "soft"}, "There are no streams yet."));
  });
}
