// Charts as SVG.

import {svg} from "./dom.js";

const LEFT = 56, RIGHT = 12, TOP = 24, BOTTOM = 28;
const SMALL = {width: 320, height: 160}, LARGE = {width: 900, height: 260};

/** The size of a chart that has the width of the page; texts stay readable on a phone. */
function pageSize() {
  return matchMedia("(max-width: 700px)").matches ? SMALL : LARGE;
}

/** A line chart: series are {name, points: [[x, y], …]}, with gaps where y is null; `zero` keeps 0 in view. */
export function lineChart(series, {formatX = String, formatY = short, label = "chart", dots = false, small = false, zero = true} = {}) {
  const points = series.flatMap((each) => each.points);
  const ys = points.map(([, y]) => y).filter((y) => y !== null);
  const frame = frameOf(small ? SMALL : pageSize(), points.map(([x]) => x), zero ? [0, ...ys] : ys, formatX, formatY, label);
  series.forEach((each, index) => {
    const style = index % 5;
    for (const part of parts(each.points)) {
      if (dots || part.length === 1) {
        frame.node.append(...part.map(([x, y]) => svg("circle", {class: `fill-${style}`, cx: frame.x(x), cy: frame.y(y), r: 2.5})));
      }
      if (!dots && part.length > 1) {
        frame.node.append(svg("polyline", {class: `line-${style}`, points: part.map(([x, y]) => `${frame.x(x)},${frame.y(y)}`).join(" ")}));
      }
    }
  });
  legend(frame.node, series);
  return frame.node;
}

/** A bar chart: bars are [name, value]. */
export function barChart(bars, {formatY = short, label = "chart"} = {}) {
  const values = bars.map(([, value]) => value).filter((value) => value !== null);
  const size = pageSize();
  const frame = frameOf(size, [0, Math.max(1, bars.length)], [0, ...values], () => "", formatY, label);
  const width = (size.width - LEFT - RIGHT) / Math.max(1, bars.length);
  bars.forEach(([name, value], index) => {
    if (value === null) return;
    const [from, to] = [frame.y(0), frame.y(value)];
    const bar = svg("rect", {class: "fill-0", x: LEFT + index * width + width * 0.1, width: width * 0.8, y: Math.min(from, to), height: Math.max(1, Math.abs(from - to))});
    bar.append(svg("title", {}, `${name}: ${value}`));
    frame.node.append(bar);
    if (width > 24) frame.node.append(svg("text", {x: LEFT + (index + 0.5) * width, y: size.height - 10, "text-anchor": "middle"}, cut(String(name), width / 6)));
  });
  return frame.node;
}

function cut(text, length) {
  return text.length <= length ? text : `${text.slice(0, Math.max(1, length - 1))}…`;
}

/** A short text of a number, with so many digits. */
export function short(value, digits = 3) {
  const size = Math.abs(value);
  for (const [limit, unit] of [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]]) {
    if (size >= limit) return `${+(value / limit).toPrecision(digits)}${unit}`;
  }
  return `${+value.toPrecision(digits)}`;
}

function parts(points) {
  const result = [[]];
  for (const point of points) {
    if (point[1] === null) { if (result.at(-1).length) result.push([]); } else result.at(-1).push(point);
  }
  return result.filter((part) => part.length);
}

function frameOf({width, height}, xs, ys, formatX, formatY, label) {
  const [lowX, highX] = span(xs), [low, high] = span(ys);
  const x = (value) => LEFT + ((value - lowX) / (highX - lowX)) * (width - LEFT - RIGHT);
  const y = (value) => height - BOTTOM - ((value - low) / (high - low)) * (height - TOP - BOTTOM);
  const node = svg("svg", {viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label, class: width === SMALL.width ? "chart small" : "chart"});
  const ticks = [low, low + 0.5 * (high - low), high], texts = distinctTexts(ticks, formatY);
  ticks.forEach((value, index) => {
    node.append(svg("line", {class: "axis", x1: LEFT, x2: width - RIGHT, y1: y(value), y2: y(value)}),
      svg("text", {x: LEFT - 6, y: y(value) + 4, "text-anchor": "end"}, texts[index]));
  });
  if (xs.length) {
    node.append(svg("text", {x: LEFT, y: height - 8}, formatX(lowX)),
      svg("text", {x: width - RIGHT, y: height - 8, "text-anchor": "end"}, formatX(highX)));
  }
  return {node, x, y};
}

/** The texts of numbers, with as many digits as it takes to tell them apart. */
function distinctTexts(values, format) {
  for (let digits = 3; digits < 7; digits += 1) {
    const texts = values.map((value) => format(value, digits));
    if (new Set(texts).size === texts.length) return texts;
  }
  return values.map((value) => format(value, 7));
}

function span(values) {
  let low = Infinity, high = -Infinity;
  for (const value of values) { low = Math.min(low, value); high = Math.max(high, value); }
  if (!Number.isFinite(low)) return [0, 1];
  if (low !== high) return [low, high];
  return low === 0 ? [0, 1] : [low - 1, low + 1];
}

function legend(node, series) {
  if (series.length < 2) return;
  series.forEach((each, index) => node.append(
    svg("rect", {class: `fill-${index % 5}`, x: LEFT + 8 + index * 110, y: 4, width: 10, height: 10}),
    svg("text", {x: LEFT + 22 + index * 110, y: 13}, each.name)));
}
