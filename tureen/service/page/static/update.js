// Updates in place: elements that stay keep the focus, the selection of text, their scroll position and open details.

import {fragment} from "./dom.js";

/** Change the children of an element to these; elements with the same key, or at the same place without one, stay. */
export function update(node, ...children) {
  patchChildren(node, fragment(children));
}

function patchChildren(node, wanted) {
  const nexts = [...wanted.childNodes];
  const keys = new Set(nexts.map(keyOf).filter((key) => key !== null));
  const keyed = new Map([...node.childNodes].map((child) => [keyOf(child), child]).filter(([key]) => key !== null));
  let current = node.firstChild;
  const skip = () => { const passed = current; current = current.nextSibling; return passed; };
  for (const next of nexts) {
    // What is gone is removed first, so that what stays need not be moved: an element that is moved loses the focus.
    while (current !== null && keyOf(current) !== null && !keys.has(keyOf(current))) skip().remove();
    const key = keyOf(next);
    const match = key !== null ? keyed.get(key) : keyOf(current) === null ? current : null;
    if (match && isAlike(match, next)) {
      if (match === current) skip();
      else node.insertBefore(match, current);
      patch(match, next);
    } else if (match && match === current) {
      skip().replaceWith(next);
    } else {
      if (match) match.remove();
      node.insertBefore(next, current);
    }
  }
  while (current !== null) skip().remove();
}

/** The key that an element was created with; null for others. */
function keyOf(node) {
  return node?.key ?? null;
}

/** Whether one can become the other; not if something listens to them, because it may refer to other data. */
function isAlike(node, next) {
  return node.nodeName === next.nodeName && !node.listens && !next.listens;
}

function patch(node, next) {
  if (node.nodeType === Node.TEXT_NODE) {
    if (node.data !== next.data) node.data = next.data;
    return;
  }
  if (node.isEqualNode(next)) return;
  for (const {name} of [...node.attributes]) {
    // The reader opens and closes details.
    if (!next.hasAttribute(name) && !(name === "open" && node.nodeName === "DETAILS")) node.removeAttribute(name);
  }
  for (const {name, value} of next.attributes) {
    if (node.getAttribute(name) !== value) node.setAttribute(name, value);
  }
  patchChildren(node, next);
}
