// A chart of an answer, chosen from its columns; the reader can change it.

import {barChart, lineChart} from "./chart.js";
import {choice, count, el, replace} from "./dom.js";
import {isNumber} from "./table.js";
import {update} from "./update.js";

const BARS = 100;
const KINDS = [["none", "no chart"], ["line", "line"], ["points", "points"], ["bars", "bars"]];

/** A chart with controls: {node, update(answer)}. */
export function answerChart() {
  const controls = el("div", {class: "row"}), drawing = el("div");
  const node = el("div", {}, controls, drawing);
  let names = null, answer = null, kind = null, x = null, y = null;

  function draw() {
    const chosen = kind.value;
    if (chosen === "none" || !answer.rows.length) return update(drawing);
    const label = `${y.value} by ${x.value}`;
    if (chosen === "bars") {
      const bars = answer.rows.slice(0, BARS).map((row) => [row[x.value] ?? "NULL", number(row[y.value])]);
      return update(drawing, barChart(bars, {label}),
        bars.length < answer.rows.length ? el("p", {class: "soft"}, `The first ${count(bars.length)} rows are drawn.`) : null);
    }
    const type = answer.columns.find((column) => column.name === x.value).type;
    const points = answer.rows.map((row) => [position(row[x.value], type), number(row[y.value])]).filter(([at]) => at !== null);
    points.sort((first, second) => first[0] - second[0]);
    const formatX = isTime(type) ? timeFormat(points.map(([at]) => at)) : String;
    return update(drawing, lineChart([{name: y.value, points}], {label, formatX, dots: chosen === "points", zero: false}));
  }

  function choose() {
    const columns = answer.columns;
    const numbers = columns.filter((column) => isNumber(column.type));
    const time = columns.find((column) => isTime(column.type));
    const text = columns.find((column) => !isNumber(column.type) && !isTime(column.type));
    const value = numbers.at(-1);
    const start = !value ? "none" : time ? "line" : text ? "bars" : numbers.length > 1 ? "points" : "none";
    const across = start === "line" ? time : start === "bars" ? text : numbers[0] ?? columns[0];
    kind = choice(KINDS, start, {"aria-label": "Kind of chart"});
    x = choice(columns.map((column) => [column.name, column.name]), across?.name, {"aria-label": "Across"});
    y = choice(numbers.map((column) => [column.name, column.name]), value?.name, {"aria-label": "Up"});
    replace(controls, numbers.length ? [kind, "of", y, "by", x] : null);
    for (const control of [kind, x, y]) control.addEventListener("change", draw);
  }

  return {
    node,
    update(news) {
      answer = news;
      const key = JSON.stringify(news.columns);
      if (key !== names) { names = key; choose(); }
      draw();
    },
  };
}

function isTime(type) {
  return /^(TIMESTAMP|DATE)/i.test(type);
}

/** How to write times: without the day if all have the same. */
function timeFormat(times) {
  const days = new Set(times.map((at) => new Date(at).toDateString()));
  return days.size === 1 ? (at) => new Date(at).toLocaleTimeString() : (at) => new Date(at).toLocaleString([], {dateStyle: "short", timeStyle: "short"});
}

function number(value) {
  const parsed = value === null ? NaN : Number(value);
  return Number.isFinite(parsed) ? parsed : null;
}

function position(value, type) {
  return isTime(type) ? (Number.isNaN(Date.parse(value)) ? null : Date.parse(value)) : number(value);
}
