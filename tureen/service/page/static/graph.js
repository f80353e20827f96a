// Graphs without cycles as SVG: boxes in columns, edges from left to right.

import {svg} from "./dom.js";

const BOX = 240, LINE = 16, GAP_X = 60, GAP_Y = 18, PAD = 8;

/** Draw nodes {id, title, lines, link, style} and edges [from, to, text]. */
export function drawGraph(nodes, edges, label) {
  const columns = columnsOf(nodes, edges);
  const places = new Map();
  let width = 0, height = 0;
  columns.forEach((column, number) => {
    let top = PAD;
    for (const node of column) {
      const lines = (node.lines ?? []).flatMap((line) => wrapped(line));
      const size = PAD * 2 + LINE * (1 + lines.length);
      places.set(node.id, {x: PAD + number * (BOX + GAP_X), y: top, size, lines, node});
      top += size + GAP_Y;
    }
    width = PAD * 2 + (number + 1) * (BOX + GAP_X) - GAP_X;
    height = Math.max(height, top);
  });
  const drawing = svg("svg", {viewBox: `0 0 ${Math.max(width, 300)} ${height + PAD}`, width: Math.max(width, 300), height: height + PAD, role: "group", "aria-label": label});
  for (const [from, to, text] of edges) {
    const [start, end] = [places.get(from), places.get(to)];
    if (!start || !end) continue;
    const [x1, y1, x2, y2] = [start.x + BOX, start.y + start.size / 2, end.x, end.y + end.size / 2];
    const middle = (x1 + x2) / 2;
    drawing.append(svg("path", {class: "edge", d: `M${x1},${y1} C${middle},${y1} ${middle},${y2} ${x2 - 6},${y2}`}),
      svg("path", {class: "head", d: `M${x2},${y2} l-7,-4 v8 z`}));
    if (text) drawing.append(svg("text", {x: middle, y: (y1 + y2) / 2 - 5, "text-anchor": "middle"}, text));
  }
  for (const {x, y, size, lines, node} of places.values()) {
    const title = svg("text", {class: "title", x: x + PAD, y: y + PAD + 11}, cut(node.title), cut(node.title) === node.title ? null : svg("title", {}, node.title));
    drawing.append(svg("g", {key: node.id},
      svg("rect", {class: `box${node.style ? `-${node.style}` : ""}`, x, y, width: BOX, height: size, rx: 6}),
      node.link ? svg("a", {href: node.link}, title) : title,
      lines.map((line, number) => svg("text", {x: x + PAD, y: y + PAD + 11 + LINE * (number + 1)}, line))));
  }
  return drawing;
}

/** The nodes by their longest path from a node without incoming edges. */
function columnsOf(nodes, edges) {
  const level = new Map(nodes.map((node) => [node.id, 0]));
  for (let round = 0; round < nodes.length; round += 1) {
    let changed = false;
    for (const [from, to] of edges) {
      if (level.has(from) && level.has(to) && level.get(to) < level.get(from) + 1) {
        level.set(to, level.get(from) + 1);
        changed = true;
      }
    }
    if (!changed) break;
  }
  const columns = [];
  for (const node of nodes) (columns[level.get(node.id)] ??= []).push(node);
  return [...columns].map((column) => column ?? []);
}

function cut(text) {
  return text.length <= 28 ? text : `${text.slice(0, 27)}…`;
}

function wrapped(text) {
  const lines = [];
  let line = "";
  for (const word of String(text).split(" ")) {
    if (line && line.length + word.length > 34) { lines.push(line); line = ""; }
    line += (line ? " " : "") + word;
    while (line.length > 36) { lines.push(line.slice(0, 35)); line = line.slice(35); }
  }
  return [...lines, line].filter(Boolean).slice(0, 6);
}
