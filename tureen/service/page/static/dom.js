// Elements of the page. Texts are always text nodes, so that no value can become markup.

/** Create an element: el("a", {href: "…", class: "…", onclick: f, key: "…"}, "text", child, …); see `update` for keys. */
export function el(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

/** Create an SVG element. */
export function svg(tag, attributes = {}, ...children) {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "key") node.key = String(value);
    else if (name.startsWith("on")) { node.addEventListener(name.slice(2), value); node.listens = true; }
    else if (name === "value" || name === "checked" || name === "disabled" || name === "selected") node[name] = value;
    else node.setAttribute(name, value === true ? "" : String(value));
  }
  append(node, children);
  return node;
}

function append(node, children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    node.append(child instanceof Node ? child : String(child));
  }
}

/** Children without a parent. */
export function fragment(children) {
  const node = document.createDocumentFragment();
  append(node, children);
  return node;
}

/** Replace the children of an element. */
export function replace(node, ...children) {
  node.replaceChildren();
  append(node, children);
}

/** A field of a form with its label. */
export function field(label, control) {
  return el("label", {class: "field"}, el("span", {}, label), control);
}

/** What a view shows until the first response has come. */
export function loading() {
  return el("p", {class: "soft", role: "status"}, "Loading …");
}

/** A drop-down list of [value, text] pairs. */
export function choice(pairs, selected, attributes = {}) {
  return el("select", attributes, pairs.map(([value, text]) => el("option", {value, selected: value === selected}, text)));
}

/** Show a message for some seconds; errors stay until they are clicked. */
export function notify(message, isError = false) {
  const box = el("div", {class: isError ? "error" : ""}, message);
  box.addEventListener("click", () => box.remove());
  document.getElementById("notice").append(box);
  if (!isError) setTimeout(() => box.remove(), 5000);
}

/** Ask before something is deleted; resolves to true if it was confirmed. */
export function confirmed(question, action) {
  return new Promise((resolve) => {
    const close = (answer) => { dialog.close(); dialog.remove(); resolve(answer); };
    const cancel = el("button", {type: "button", onclick: () => close(false)}, "Cancel");
    const dialog = el("dialog", {"aria-label": question},
      el("p", {}, question),
      el("div", {class: "row"}, cancel, el("button", {type: "button", class: "danger", onclick: () => close(true)}, action)));
    dialog.addEventListener("cancel", () => close(false));
    document.body.append(dialog);
    dialog.showModal();
    cancel.focus();
  });
}

/** Tabs: a list of [title, function that fills a panel and returns a function that stops it]. */
export function tabs(pages, selected = 0) {
  const panel = el("div", {role: "tabpanel", id: "panel", tabindex: 0});
  let stop = null;
  const buttons = pages.map(([title], index) => el("button",
    {type: "button", role: "tab", id: `tab-${index}`, "aria-controls": "panel", onclick: () => open(index)}, title));
  const list = el("div", {role: "tablist"}, buttons);
  list.addEventListener("keydown", (event) => {
    const step = {ArrowRight: 1, ArrowLeft: -1}[event.key];
    if (!step) return;
    const next = (buttons.indexOf(document.activeElement) + step + buttons.length) % buttons.length;
    buttons[next].focus();
    open(next);
  });
  function open(index) {
    stop?.();
    buttons.forEach((button, number) => {
      button.setAttribute("aria-selected", String(number === index));
      button.tabIndex = number === index ? 0 : -1;
    });
    panel.setAttribute("aria-labelledby", `tab-${index}`);
    replace(panel);
    stop = pages[index][1](panel);
  }
  open(selected);
  return {nodes: [list, panel], stop: () => stop?.()};
}

/**
 * Call a function now and then repeatedly, while the page is visible; returns a function that stops it.
 *
 * It gets how old a response may be, in seconds: what was done before the first call is in its responses; later ones
 * may be those that other pages got.
 */
export function every(milliseconds, action) {
  let stopped = false, timer = null, running = false, failed = false, maxAge = 0;
  async function run() {
    clearTimeout(timer);
    if (stopped || running || document.hidden) return;
    running = true;
    try {
      await action(maxAge);
      failed = false;
      maxAge = Math.max(1, Math.floor(milliseconds / 1000));
    } catch (error) {
      // It may be over at the next attempt; told once.
      if (!stopped && !failed) notify(error.text ?? error.message, true);
      failed = true;
    }
    running = false;
    if (!stopped) timer = setTimeout(run, milliseconds);
  }
  document.addEventListener("visibilitychange", run);
  run();
  return () => { stopped = true; clearTimeout(timer); document.removeEventListener("visibilitychange", run); };
}

/** A number with separators. */
export function count(value) {
  return value === null || value === undefined ? "–" : Number(value).toLocaleString("en");
}

/** A number of things, with the singular for 1. */
export function plural(value, singular, many = `${singular}s`) {
  return `${count(value)} ${value === 1 ? singular : many}`;
}

/** A duration in its largest unit without a rest. */
export function duration(value) {
  const [name, length] = [["day", 86_400], ["hour", 3600], ["minute", 60]].find(([, each]) => value && value % each === 0) ?? ["second", 1];
  return plural(value / length, name);
}

/** A number of bytes. */
export function bytes(value) {
  const units = ["B", "kB", "MB", "GB", "TB"];
  let unit = 0, rest = Number(value);
  while (rest >= 1000 && unit < units.length - 1) { rest /= 1000; unit += 1; }
  return `${rest < 10 && unit ? rest.toFixed(1) : Math.round(rest)} ${units[unit]}`;
}

/** A number of seconds. */
export function seconds(value) {
  if (value === null || value === undefined) return "–";
  if (value === 0) return "0 s";
  return value < 1 ? `${(value * 1000).toPrecision(3)} ms` : `${value.toPrecision(3)} s`;
}
