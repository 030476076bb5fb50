// Elements from data. Children that are not elements become text nodes: nothing here can turn text into markup.

export function h(tag, props = {}, ...children) {
  const element = document.createElement(tag);
  setProps(element, props);
  element.append(...flat(children));
  return element;
}

const SVG = "http://www.w3.org/2000/svg";

export function svg(tag, attributes = {}, ...children) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...flat(children));
  return element;
}

function setProps(element, props) {
  for (const [name, value] of Object.entries(props)) {
    if (value === undefined || value === null || value === false) continue;
    if (name === "class") element.className = value;
    else if (name === "key") element.dataset.key = value;
    else if (name.startsWith("on")) listen(element, name.slice(2), value);
    else if (name in element && name !== "list" && name !== "form") element[name] = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
}

// What an element does; it can be replaced when the element is updated.
const doing = new WeakMap();

function listen(element, type, act) {
  const acts = doing.get(element) ?? {};
  doing.set(element, acts);
  if (!(type in acts)) element.addEventListener(type, (event) => acts[type](event));
  acts[type] = act;
}

// Control characters, and those that turn the direction of the text around them.
const UNPRINTABLE = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/g;

// The same text with \u202e, for example, in place of a character that would turn around what follows.
function printable(text) {
  return String(text).replace(UNPRINTABLE, (each) => `\\u${each.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

function flat(children) {
  return children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false)
    .map((child) => (child instanceof Node ? child : document.createTextNode(printable(child))));
}

// Puts new children into an element.
export function fill(element, ...children) {
  element.replaceChildren(...flat(children));
}

// Makes the children of an element equal to new ones, and touches only what differs. So the focus stays, and selected text,
// and how far a table is scrolled, and what is unfolded. Children with the same key are the same. What an element does must
// not refer to that element, since an older one may be in its place: it has `event.currentTarget`.
export function update(element, ...children) {
  const focused = element.contains(document.activeElement) ? document.activeElement : null;
  patchChildren(element, flat(children));
  if (!focused || focused === document.activeElement || focused.dataset.key === undefined) return;
  [...element.querySelectorAll("[data-key]")].find((each) => each.dataset.key === focused.dataset.key)?.focus({ preventScroll: true });
}

function keyOf(node) {
  return node.dataset?.key;
}

function patchChildren(parent, wanted) {
  const keyed = new Map([...parent.children].filter(keyOf).map((child) => [keyOf(child), child]));
  const staying = new Set(wanted);
  let place = parent.firstChild;
  for (const child of wanted) {
    const like = (node) => node?.nodeName === child.nodeName;
    let kept = child.parentNode === parent ? child : keyed.get(keyOf(child));
    if (!like(kept)) kept = undefined;
    if (!kept && !keyOf(child)) {
      kept = place;
      while (kept && (keyOf(kept) || staying.has(kept) || !like(kept))) kept = kept.nextSibling;
    }
    if (kept && kept === place) place = place.nextSibling;
    else parent.insertBefore(kept ?? child, place);
    if (kept && kept !== child) patch(kept, child);
  }
  while (place) {
    const next = place.nextSibling;
    place.remove();
    place = next;
  }
}

function patch(node, wanted) {
  if (node.nodeType === Node.TEXT_NODE) {
    if (node.data !== wanted.data) node.data = wanted.data;
    return;
  }
  for (const { name } of [...node.attributes]) {
    // Whether something is unfolded is for whoever looks at it to say.
    if (!wanted.hasAttribute(name) && name !== "open") node.removeAttribute(name);
  }
  for (const { name, value } of wanted.attributes) {
    if (node.getAttribute(name) !== value) node.setAttribute(name, value);
  }
  for (const [type, act] of Object.entries(doing.get(wanted) ?? {})) listen(node, type, act);
  patchChildren(node, [...wanted.childNodes]);
}

// Puts new rows above those of a list, and takes away the oldest ones.
export function prepend(list, rows, most) {
  list.prepend(...flat(rows));
  while (list.children.length > most) list.lastElementChild.remove();
}

// Whether somebody reads one of its rows. New ones would push it away: they wait.
export function isRead(list) {
  return list.querySelector("details[open]") !== null;
}

// A column has a name, a function from a row to its cell, perhaps a kind, and perhaps words for whoever does not know it.
export function table(columns, rows, { caption, empty } = {}) {
  if (!rows.length) return empty ?? h("p", { class: "muted" }, "Nothing here.");
  const explained = columns.filter(([, , , meaning]) => meaning);
  return [h("div", { class: "scroll" },
    h("table", {},
      caption ? h("caption", {}, caption) : null,
      h("thead", {}, h("tr", {}, columns.map(([name, , kind, meaning]) =>
        name ? h("th", { class: kind ?? "", scope: "col", title: meaning }, name) : h("td", {})))),
      h("tbody", {}, rows.map((row) =>
        h("tr", {}, columns.map(([name, cell, kind]) => h("td", { class: kind ?? "", "data-name": name }, cell(row)))))))),
  explained.length ? h("details", { class: "meanings" }, h("summary", {}, "What the columns mean"),
    h("dl", { class: "facts-list" }, explained.map(([name, , , meaning]) => [h("dt", {}, name), h("dd", {}, meaning)]))) : null];
}

export function emptyState(title, words, ...commands) {
  return h("div", { class: "empty" },
    h("p", { class: "title" }, title),
    h("p", {}, words),
    commands.map((command) => h("div", { class: "command" },
      h("code", {}, command),
      copyButton(() => command))));
}

export function copyButton(text, label = "Copy") {
  return h("button", { type: "button", class: "small", onclick: async (event) => {
    const button = event.currentTarget;
    try {
      await navigator.clipboard.writeText(text());
      button.textContent = "Copied";
    } catch {
      button.textContent = "Not allowed";
    }
    setTimeout(() => { button.textContent = label; }, 1200);
  } }, label);
}

export function pager(data, go) {
  if (data.pages <= 1) return null;
  return h("div", { class: "pager" },
    h("button", { type: "button", key: "previous", disabled: data.page <= 0, onclick: () => go(data.page - 1) }, "Previous"),
    h("span", {}, `page ${data.page + 1} of ${data.pages}`),
    h("button", { type: "button", key: "next", disabled: data.page + 1 >= data.pages, onclick: () => go(data.page + 1) }, "Next"));
}

export function badge(text, kind = "") {
  return h("span", { class: `badge ${kind}` }, text);
}

// A curve that grows from the right: the newest value is always at the same place.
export function spark(values, { width = 160, height = 36, slots = 60, label = "", top = 0 } = {}) {
  top = Math.max(...values, top, 1e-9);
  values = values.slice(-slots);
  const step = width / (slots - 1);
  const first = slots - values.length;
  const points = values.map((value, index) => [(first + index) * step, height - 2 - (value / top) * (height - 6)]);
  const line = points.map(([x, y]) => `${x.toFixed(1)},${y.toFixed(1)}`).join(" ");
  return svg("svg", { viewBox: `0 0 ${width} ${height}`, class: "spark", role: "img", "aria-label": label, preserveAspectRatio: "none" },
    values.length > 1 ? svg("polygon", { points: `${(first * step).toFixed(1)},${height} ${line} ${width},${height}`, class: "area" }) : null,
    values.length > 1 ? svg("polyline", { points: line, class: "line" }) : null);
}
