// The messages of a topic: newest first, from an offset or a time on, or as they come. Whatever they contain is text.

import { h, fill, badge, copyButton, emptyState } from "./dom.js";
import { get, post, tail } from "./live.js";
import { bytes, clockTime, count, plural, time } from "./words.js";
import { topicHead } from "./topics.js";

const MOST_ON_PAGE = 1000;

export function messages(root, context) {
  const [topic] = context.params;
  const partition = h("select", { "aria-label": "Partition" }, h("option", { value: "all" }, "all partitions"));
  const order = h("select", { "aria-label": "Which messages" },
    [["newest", "newest first"], ["live", "live"], ["offset", "from an offset"], ["time", "from a time"]]
      .map(([value, text]) => h("option", { value }, text)));
  const offset = h("input", { type: "number", min: 0, value: 0, "aria-label": "Offset", hidden: true, class: "short" });
  const when = h("input", { type: "datetime-local", step: 1, "aria-label": "Time", hidden: true });
  const search = h("input", { type: "search", placeholder: "Search keys, values, headers", "aria-label": "Search keys, values and headers", autocomplete: "off" });
  const says = h("p", { role: "status", class: "muted" });
  const list = h("div", { class: "messages" });
  const further = h("p");
  const writing = h("div");
  root.append(topicHead(topic, "messages"),
    h("form", { class: "inline", onsubmit: (event) => { event.preventDefault(); begin(); } },
      order, offset, when, partition, search, h("button", {}, "Show"),
      h("button", { type: "button", onclick: download }, "Download")),
    writing, says, list, further);

  let shown = [];
  let stop = null;
  let asked = 0;

  context.watch({ topic: { view: "topic", name: topic } }, (news) => {
    if (!news.topic || news.topic.error) return;
    for (let index = partition.length - 1; index < news.topic.partitions; index += 1) {
      partition.append(h("option", { value: index }, `partition ${index}`));
    }
    if (context.about?.writes && !news.topic.internal && !writing.firstChild) writing.append(producing(news.topic));
  });

  order.addEventListener("change", () => {
    offset.hidden = order.value !== "offset";
    when.hidden = order.value !== "time";
    if (order.value !== "offset" && order.value !== "time") begin();
  });
  partition.addEventListener("change", () => begin());

  function begin() {
    asked += 1;
    if (stop) stop();
    stop = null;
    shown = [];
    fill(list);
    fill(further);
    if (order.value === "live") live();
    else more(null, asked, 0);
  }

  function question() {
    const query = { topic, partition: partition.value, search: search.value };
    if (order.value === "offset") query.offset = offset.value || 0;
    if (order.value === "time") query.time = new Date(when.value || Date.now() - 3600000).getTime();
    return query;
  }

  // A search goes on by itself, a part at a time, until a page is full or nothing is left.
  async function more(cursor, number, before) {
    says.textContent = search.value ? `Searching… ${count(before)} looked at` : "Reading…";
    fill(further);
    let found;
    try {
      found = await get("/api/messages", cursor ? { ...question(), cursor } : question());
    } catch (error) {
      if (number === asked) fill(says, error.message);
      return;
    }
    if (number !== asked) return;
    const lookedAt = before + found.looked_at;
    add(found.records);
    if (found.cursor && search.value && shown.length < 50 && found.records.length < 50) {
      await more(found.cursor, number, lookedAt);
      return;
    }
    says.textContent = search.value
      ? `${plural(shown.length, "message")} found among ${count(lookedAt)}.`
      : plural(shown.length, "message", "messages");
    if (!shown.length) fill(list, nothing());
    if (found.cursor) {
      fill(further, h("button", { type: "button", onclick: () => more(found.cursor, number, lookedAt) },
        order.value === "newest" ? "Older ones" : "Later ones"));
    }
  }

  function nothing() {
    if (search.value) return h("p", { class: "muted" }, "Nothing has this in its key, its value or a header.");
    return emptyState("No messages yet", "Send one from a terminal, and it is here at once:",
      `echo "Hello, K." | ${context.command(`produce ${topic}`)}`);
  }

  function live() {
    says.textContent = "Waiting for messages…";
    let total = 0;
    stop = tail(question(), (news) => {
      total += news.records.length + news.skipped;
      shown = [...news.records.reverse(), ...shown].slice(0, 200);
      fill(list, shown.map((record) => row(topic, record)));
      says.textContent = `${plural(total, "message")} since you look` +
        (news.skipped ? `; too many to show all: ${count(news.skipped)} were left out just now.` : ".");
    });
  }

  function add(records) {
    shown = [...shown, ...records].slice(0, MOST_ON_PAGE);
    list.append(...records.map((record) => row(topic, record)));
  }

  function download() {
    const lines = shown.map((record) => JSON.stringify({
      partition: record.partition, offset: record.offset, timestamp: record.timestamp,
      key: plain(record.key), value: plain(record.value),
      headers: record.headers?.map((header) => [header.name, plain(header.value)]),
    }));
    const address = URL.createObjectURL(new Blob([`${lines.join("\n")}\n`], { type: "application/jsonl" }));
    const anchor = h("a", { href: address, download: `${topic}.jsonl` });
    anchor.click();
    URL.revokeObjectURL(address);
  }

  function producing(about) {
    const key = h("input", { placeholder: "key", "aria-label": "Key", autocomplete: "off" });
    const value = h("textarea", { placeholder: "value", "aria-label": "Value", rows: 2 });
    const to = h("input", { type: "number", min: 0, max: about.partitions - 1, value: 0, "aria-label": "Partition", class: "short" });
    const told = h("span", { role: "status", class: "muted" });
    return h("details", {}, h("summary", {}, "Produce one"),
      h("form", { class: "inline", onsubmit: async (event) => {
        event.preventDefault();
        try {
          const body = { topic, partition: Number(to.value), key: key.value || null, value: value.value };
          const written = await post("/api/messages/produce", body);
          told.textContent = `Written: partition ${written.partition}, offset ${written.offset}.`;
          if (order.value === "newest") begin();
        } catch (error) {
          told.textContent = error.message;
        }
      } }, key, value, h("label", {}, "partition ", to), h("button", {}, "Produce"), told));
  }

  begin();
  return () => { if (stop) stop(); };
}

function plain(field) {
  if (!field) return null;
  return field.text ?? `hex:${field.hex}`;
}

function preview(field) {
  if (field === null || field === undefined) return h("span", { class: "null" }, "null");
  if (field.text === "") return h("span", { class: "null" }, "empty");
  if (field.text !== undefined) return field.text.slice(0, 300);
  return h("span", { class: "hex" }, field.hex.slice(0, 80).replace(/../g, "$& "));
}

function row(topic, record) {
  const summary = h("summary", { "data-row": "" },
    h("span", { class: "when", title: time(record.timestamp) }, clockTime(record.timestamp)),
    h("span", { class: "where" }, `${record.partition} : ${record.offset}`),
    record.error ? h("span", { class: "value bad-text" }, record.error)
      : record.control ? h("span", { class: "value" }, badge(`transaction ${record.control}`, record.control === "abort" ? "bad" : "good"))
        : [h("span", { class: "key" }, preview(record.key)), h("span", { class: "value" }, preview(record.value))]);
  const details = h("details", { class: "message" }, summary);
  details.addEventListener("toggle", () => {
    if (details.open && details.children.length === 1) details.append(inside(topic, record));
  });
  return details;
}

function inside(topic, record) {
  const box = h("div", { class: "inside" });
  draw(record);
  return box;

  function draw(now) {
    fill(box,
      "value" in now ? [fieldView("Key", now.key), fieldView("Value", now.value)] : null,
      now.key?.cut || now.value?.cut ? h("p", {}, h("button", { type: "button", onclick: whole }, "Show more of it")) : null,
      now.headers?.length ? h("section", {}, h("h4", {}, "Headers"),
        now.headers.map((header) => h("div", { class: "header" }, h("code", {}, header.name), " ", preview(header.value))),
        now.more_headers ? h("p", { class: "muted" }, `and ${count(now.more_headers)} more`) : null) : null,
      h("section", {}, h("h4", {}, "Written"), facts(now)),
      h("p", {}, copyButton(() => JSON.stringify(now, null, 2), "Copy as JSON")));
  }

  async function whole() {
    try {
      draw(await get("/api/message", { topic, partition: record.partition, offset: record.offset }));
    } catch (error) {
      box.append(h("p", { class: "problems" }, error.message));
    }
  }
}

function facts(record) {
  const { batch } = record;
  const rows = [
    ["Time", `${time(record.timestamp)} (${batch.timestamp_type})`],
    ["Batch", `offsets ${batch.base_offset} to ${batch.last_offset}, ${plural(batch.records, "record")}, ${bytes(batch.bytes)}, ${batch.codec === "none" ? "not compressed" : batch.codec}`],
    ["Checksum", `CRC-32C ${batch.crc}`],
    ["Leader epoch", String(batch.leader_epoch)],
  ];
  if (batch.producer_id >= 0) {
    rows.push(["Producer", `id ${batch.producer_id}, epoch ${batch.producer_epoch}, first sequence ${batch.base_sequence}`]);
  }
  if (batch.transactional) rows.push(["Transaction", batch.control ? "the end of one" : "part of one"]);
  return h("dl", { class: "facts-list" }, rows.map(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]));
}

function fieldView(title, field) {
  if (field === null) return h("section", {}, h("h4", {}, title), h("span", { class: "null" }, "null"));
  const content = h("div", { class: "content" });
  const forms = [];
  const parsed = field.text !== undefined && !field.cut ? parse(field.text) : undefined;
  if (parsed !== undefined && typeof parsed === "object" && parsed !== null) forms.push(["JSON", () => tree(parsed)]);
  if (field.text !== undefined) forms.push(["Text", () => h("pre", {}, field.text)]);
  forms.push(["Hex", () => h("pre", { class: "hex" }, dump(field))]);
  const buttons = forms.map(([name, draw]) => h("button", { type: "button", class: "small", "aria-pressed": "false", onclick: () => {
    for (const each of buttons) each.setAttribute("aria-pressed", String(each.textContent === name));
    fill(content, draw());
  } }, name));
  buttons[0].setAttribute("aria-pressed", "true");
  fill(content, forms[0][1]());
  return h("section", {}, h("h4", {}, title, " ", h("span", { class: "muted" }, bytes(field.size), field.cut ? ", cut" : "")),
    h("div", { class: "forms" }, buttons, copyButton(() => field.text ?? field.hex)), content);
}

function parse(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

// JSON, folded and coloured. Deep or long parts are drawn when they are opened.
function tree(value, name, depth = 0) {
  const label = name === undefined ? null : [h("span", { class: "json-name" }, JSON.stringify(name)), ": "];
  if (value === null || typeof value !== "object") {
    return h("div", { class: "json" }, label, h("span", { class: `json-${value === null ? "null" : typeof value}` }, JSON.stringify(value)));
  }
  const isArray = Array.isArray(value);
  const entries = isArray ? value.map((each) => [undefined, each]) : Object.entries(value);
  const [open, close] = isArray ? "[]" : "{}";
  if (!entries.length) return h("div", { class: "json" }, label, open + close);
  const folded = h("details", { class: "json" },
    h("summary", {}, label, open, h("span", { class: "muted" }, isArray ? plural(entries.length, "item") : plural(entries.length, "field")), close));
  const draw = () => {
    if (folded.children.length > 1) return;
    folded.append(h("div", { class: "json-inside" },
      entries.slice(0, 500).map(([key, each]) => tree(each, key, depth + 1)),
      entries.length > 500 ? h("p", { class: "muted" }, `and ${count(entries.length - 500)} more`) : null));
  };
  folded.addEventListener("toggle", () => { if (folded.open) draw(); });
  if (depth < 2) {
    draw();
    folded.open = true;
  }
  return folded;
}

function dump(field) {
  const data = field.text !== undefined ? new TextEncoder().encode(field.text)
    : Uint8Array.from(field.hex.match(/../g) ?? [], (pair) => parseInt(pair, 16));
  const lines = [];
  for (let at = 0; at < Math.min(data.length, 4096); at += 16) {
    const part = [...data.slice(at, at + 16)];
    lines.push(`${at.toString(16).padStart(6, "0")}  ` +
      `${part.map((byte) => byte.toString(16).padStart(2, "0")).join(" ").padEnd(48)} ` +
      part.map((byte) => (byte >= 32 && byte < 127 ? String.fromCharCode(byte) : ".")).join(""));
  }
  if (data.length > 4096) lines.push(`… ${count(data.length - 4096)} more bytes`);
  return lines.join("\n");
}
