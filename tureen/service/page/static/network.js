// The network: which streams are derived from which, and for administrators the servers that send and receive streams.

import {get} from "./api.js";
import {bytes, count, el, every, plural, replace} from "./dom.js";
import {drawGraph} from "./graph.js";
import {mentions} from "./streams.js";
import {heads} from "./table.js";
import {update} from "./update.js";

export function show(main) {
  const servers = el("div"), graph = el("div");
  replace(main, el("h1", {}, "Network"), servers, el("h2", {}, "Streams"), graph);
  return every(2000, async (maxAge) => {
    const [{streams}, status] = await Promise.all([get("/v1/streams", {limit: 1000}, maxAge), get("/v1/status", {}, maxAge)]);
    const nodes = streams.map((stream) => {
      const numbers = status.streams[stream.name] ?? {};
      return {id: stream.name, title: stream.name, link: `#/streams/${encodeURIComponent(stream.name)}`, style: stream.error ? "bad" : stream.query ? "accent" : null,
        lines: [!stream.home && plural(numbers.rows ?? 0, "tuple"), numbers.rows_per_second !== undefined && `${numbers.rows_per_second} rows per second`, numbers.unread_tuples && `${count(numbers.unread_tuples)} tuples behind`, stream.source && `from ${stream.source.format}`, stream.home && `lives at ${stream.home}`].filter(Boolean)};
    });
    const edges = streams.filter((stream) => stream.query).flatMap((stream) =>
      streams.filter((other) => other !== stream && mentions(stream.query, other.name)).map((other) => [other.name, stream.name]));
    update(servers, Object.keys(status.peers ?? {}).length ? serverMap(status) : el("div"));
    update(graph, nodes.length ? el("div", {class: "scroll"}, drawGraph(nodes, edges, "streams and what they are derived from")) : el("p", {class: "soft"}, "There are no streams yet."));
  });
}

/** This server between the peers that it receives streams from and those that it sends flows to, and its links. */
function serverMap({name, peers, links, sent}) {
  const nodes = [], edges = [];
  for (const [peer, {state, error}] of Object.entries(peers)) {
    if (state === "shared with") continue;  // it only receives
    const received = links.filter((link) => link.peer === peer);
    nodes.push({id: `from ${peer}`, title: peer, style: ["away", "refused"].includes(state) ? "bad" : null, lines: [state, error].filter(Boolean)});
    if (received.length) edges.push([`from ${peer}`, "this", bytes(total(received, "bytes"))]);
  }
  nodes.push({id: "this", title: name, style: "accent", lines: ["this server", `${plural(total(links, "rows"), "row")} received`]});
  for (const [peer, flows] of Object.entries(sent)) {
    nodes.push({id: `to ${peer}`, title: peer, lines: [`receives ${plural(flows.flows, "flow")}`, `${plural(flows.rows, "row")} sent`]});
    edges.push(["this", `to ${peer}`, bytes(flows.bytes)]);
  }
  return el("div", {}, el("h2", {}, "Servers"), el("div", {class: "scroll"}, drawGraph(nodes, edges, "servers that send and receive streams")),
    links.length ? el("div", {class: "scroll"}, el("table", {},
      heads(["stream", "from", "state", "rows", "bytes", "received as"], ["rows", "bytes"]),
      el("tbody", {}, links.map((link) => el("tr", {key: `${link.peer} ${link.flow}`},
        el("td", {}, link.stream), el("td", {}, link.peer), el("td", {title: link.error ?? ""}, link.state), el("td", {class: "value"}, count(link.rows)), el("td", {class: "value"}, bytes(link.bytes)), el("td", {}, el("code", {}, link.flow))))))) : null);
}

function total(items, member) {
  return items.reduce((sum, item) => sum + item[member], 0);
}
