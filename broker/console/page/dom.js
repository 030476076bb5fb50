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
    else if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name in element && name !== "list" && name !== "form") element[name] = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
}

function flat(children) {
  return children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false);
}

// Puts new children into an element, and the focus back to where it was.
export function fill(element, ...children) {
  const focused = element.contains(document.activeElement) ? document.activeElement.dataset.key : undefined;
  element.replaceChildren(...flat(children));
  if (focused !== undefined) {
    const again = [...element.querySelectorAll("[data-key]")].find((each) => each.dataset.key === focused);
    if (again) again.focus({ preventScroll: true });
  }
}

export function table(columns, rows, { caption, empty } = {}) {
  if (!rows.length) return empty ?? h("p", { class: "muted" }, "Nothing here.");
  return h("div", { class: "scroll" },
    h("table", {},
      caption ? h("caption", {}, caption) : null,
      h("thead", {}, h("tr", {}, columns.map(([name, , kind]) =>
        name ? h("th", { class: kind ?? "", scope: "col" }, name) : h("td", {})))),
      h("tbody", {}, rows.map((row) =>
        h("tr", {}, columns.map(([name, cell, kind]) => h("td", { class: kind ?? "", "data-name": name }, cell(row))))))));
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
  const button = h("button", { type: "button", class: "small", onclick: async () => {
    try {
      await navigator.clipboard.writeText(text());
      button.textContent = "Copied";
    } catch {
      button.textContent = "Not allowed";
    }
    setTimeout(() => { button.textContent = label; }, 1200);
  } }, label);
  return button;
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
export function spark(values, { width = 160, height = 36, slots = 60, label = "" } = {}) {
  const top = Math.max(...values, 1e-9);
  values = values.slice(-slots);
  const step = width / (slots - 1);
  const first = slots - values.length;
  const points = values.map((value, index) => [(first + index) * step, height - 2 - (value / top) * (height - 6)]);
  const line = points.map(([x, y]) => `${x.toFixed(1)},${y.toFixed(1)}`).join(" ");
  return svg("svg", { viewBox: `0 0 ${width} ${height}`, class: "spark", role: "img", "aria-label": label, preserveAspectRatio: "none" },
    values.length > 1 ? svg("polygon", { points: `${(first * step).toFixed(1)},${height} ${line} ${width},${height}`, class: "area" }) : null,
    values.length > 1 ? svg("polyline", { points: line, class: "line" }) : null);
}
