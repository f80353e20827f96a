// The overview: problems first, then the activity of the last minutes.

import {get} from "./api.js";
import {lineChart, short} from "./chart.js";
import {bytes, count, el, every, plural, replace, seconds} from "./dom.js";
import {update} from "./update.js";

const KEPT = 450;

export function show(main, {session}) {
  const problems = el("section", {"aria-label": "Problems"});
  const numbers = el("section", {class: "grid numbers", "aria-label": "Numbers"});
  const steps = el("div");
  const charts = el("section", {class: "grid", "aria-label": "Activity"});
  replace(main, el("h1", {}, "Overview"), problems, steps, numbers, el("h2", {}, "The last minutes"), charts);
  let samples = [];
  return every(2000, async (maxAge) => {
    const news = await get("/v1/overview", {after: samples.at(-1)?.at ?? 0}, maxAge);
    samples = [...samples, ...news.samples].slice(-KEPT);
    update(problems, news.problems.length
      ? news.problems.map((problem) => el("div", {class: "problem", key: problem.link + problem.text}, el("a", {href: problem.link}, problem.text)))
      : el("p", {class: "good"}, "No problems."));
    update(steps, news.streams ? null : firstSteps(session));
    const batch = news.batches.reduce((longest, each) => Math.max(longest, each.seconds), 0);
    update(numbers,
      card("Queries", count(news.queries.standing), news.queries.failed ? el("a", {href: "#/queries?state=failed"}, `${count(news.queries.failed)} failed`) : "none failed"),
      card("Streams", count(news.streams), `${plural(news.rows, "tuple")}, ${plural(news.tables, "table")}`),
      card("On disk", bytes(news.bytes), `${bytes(news.lag_bytes)} not yet indexed by Spark`),
      card("Spark", news.engine, news.batches.length ? `longest recent micro-batch ${seconds(batch)}` : ""),
      card("Version", news.version, ""));
    const charted = [
      ["Rows in per second", [["rows", "rows_per_second"]], short],
      ["From push to commit", [["p50", "freshness_p50"], ["p99", "freshness_p99"]], seconds],
      ...(session.can("admin") ? [
        ["Changes sent per second", [["changes", "changes_per_second"]], short],
        ["Invocations per second", [["invocations", "invocations_per_second"]], short],
        ["Time of an invocation", [["p50", "invocation_p50"], ["p99", "invocation_p99"]], seconds],
        ["Followers", [["followers", "followers"]], short],
        ["Memory of the server", [["memory", "memory_bytes"]], bytes],
      ] : []),
    ];
    update(charts, charted.map(([title, series, formatY]) => el("div", {class: "card"}, el("h2", {}, title),
      lineChart(series.map(([name, key]) => ({name, points: samples.map((sample) => [sample.at, sample[key]])})),
        {formatX: (at) => new Date(at * 1000).toLocaleTimeString(), formatY, label: title, small: true}))));
  });
}

/** What to do with a server that has no streams. */
function firstSteps(session) {
  const step = (href, text, rest) => el("li", {}, el("a", {href}, text), rest);
  return el("div", {class: "card"}, el("h2", {}, "First steps"), session.can("write")
    ? el("ol", {}, step("#/streams?create=1", "Create a stream", " and push a file of rows to it."),
      step("#/workbench", "Write a query", " in the workbench, and register it."),
      step("#/queries", "Watch its answer", ", its changes and its plan."),
      step("#/help", "Look up", " what the language can do."))
    : el("p", {}, "There are no streams yet. A token with the scope write can create them."));
}

function card(title, number, remark) {
  return el("div", {class: "card"}, el("h2", {}, title), el("div", {class: "number"}, number), el("div", {class: "soft"}, remark));
}
