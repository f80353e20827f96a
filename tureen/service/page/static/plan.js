// The plan of a query as a picture.

import {count, plural} from "./dom.js";
import {drawGraph} from "./graph.js";

/** A picture of what `explain` returns: inputs, their clauses, the join, groups, the answer. */
export function planGraph(plan) {
  const nodes = [], edges = [];
  const inputs = plan.inputs ?? (plan.stream || plan.table ? [plan] : []);
  let last = [];
  inputs.forEach((input, index) => {
    const name = input.stream ?? input.table ?? `input ${index + 1}`;
    const paths = input.tuples_by_path;
    const tuples = paths && Object.entries(paths).filter(([, number]) => number).map(([path, number]) => `${count(number)} ${path}`).join(", ");
    nodes.push({id: `input-${index}`, title: input.alias ? `${name} AS ${input.alias}` : name, link: input.stream ? `#/streams/${encodeURIComponent(name)}` : null,
      lines: [input.runs_in_window !== undefined && `${plural(input.runs_in_window, "run")} in the window`, tuples && `tuples: ${tuples}`].filter(Boolean)});
    nodes.push({id: `clause-${index}`, title: "Selection", style: "accent",
      lines: [input.factors?.length ? input.factors.join(" AND ") : "all tuples", input.access?.way, input.why,
        input.clause !== undefined && `clause ${input.clause}, shared by all queries that have it`,
        input.joined_by && `joined by ${input.joined_by}`].filter(Boolean)});
    edges.push([`input-${index}`, `clause-${index}`]);
    last.push(`clause-${index}`);
  });
  if (plan.join) {
    const order = (plan.join_order ?? []).map((step) => `${step.side}: ${count(step.joined_rows)} rows`);
    add("join", "Join", [plan.join, ...(order.length ? ["order chosen:", ...order] : [])]);
  }
  if (plan.kept_join) add("kept", plan.kept_join.used ? "Kept results of the join" : "Join evaluated when asked", [plan.kept_join.why, plan.kept_join.runs && `${plural(plan.kept_join.joined_tuples, "joined tuple")} in ${plural(plan.kept_join.runs, "run")}`].filter(Boolean));
  if (plan.operator) add("operator", "Shared operator of followers", summary(plan.operator));
  if (plan.aggregates) add("groups", "Groups", [plan.aggregates.keys?.length ? `by ${plan.aggregates.keys.join(", ")}` : "one group", plan.aggregates.kept.replace(/^nothing: /, "")].filter(Boolean));
  if (plan.reuse) add("reuse", "Reused", summary(plan.reuse));
  add("answer", "Answer", [plan.shape?.queries !== undefined && `${plural(plan.shape.queries, "query", "queries")} of this shape`].filter(Boolean), plan.error ? "bad" : "accent");
  return drawGraph(nodes, edges, "plan of the query");

  function add(id, title, lines, style = null) {
    nodes.push({id, title, lines, style});
    edges.push(...last.map((from) => [from, id]));
    last = [id];
  }
}

function summary(value) {
  if (typeof value !== "object") return [String(value)];
  return Object.entries(value).filter(([, each]) => each === null || typeof each !== "object")
    .map(([name, each]) => `${name.replaceAll("_", " ")}: ${typeof each === "number" ? count(each) : each}`);
}
