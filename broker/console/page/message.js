// One message: its fields as text, JSON, Avro or hexadecimal digits, and the batch behind it. Whatever it contains is text.

import { h, fill, badge, copyButton } from "./dom.js";
import { get } from "./live.js";
import { bytes, count, moment, plural, time } from "./words.js";
import { AvroError } from "./avro.js";

function plain(field) {
  if (!field) return null;
  return field.text ?? `hex:${field.hex}`;
}

export function isCut(record) {
  return Boolean(record.key?.cut || record.value?.cut || record.more_headers || record.headers?.some((header) => header.value?.cut));
}

// A message as a line of a file.
export function line(record) {
  return JSON.stringify({
    partition: record.partition, offset: record.offset, timestamp: record.timestamp, control: record.control,
    key: "key" in record ? plain(record.key) : undefined, value: "value" in record ? plain(record.value) : undefined,
    headers: record.headers?.map((header) => [header.name, plain(header.value)]),
    cut: isCut(record) || undefined,
  });
}

function preview(field) {
  if (field === null || field === undefined) return h("span", { class: "null" }, "null");
  if (field.text === "") return h("span", { class: "null" }, "empty");
  if (field.text !== undefined) return field.text.slice(0, 300);
  return h("span", { class: "hex" }, field.hex.slice(0, 80).replace(/../g, "$& "));
}

function headerValue(field) {
  if (!field?.text && !field?.hex) return preview(field);
  const shown = field.text !== undefined ? field.text : h("span", { class: "hex" }, field.hex.replace(/../g, "$& "));
  return [shown, field.cut ? h("span", { class: "muted" }, ` … ${bytes(field.size)}, cut`) : null];
}

export function row(topic, record, { avro, chosen, onchoose } = {}) {
  const summary = h("summary", { "data-row": "" },
    h("span", { class: "when", title: time(record.timestamp) }, moment(record.timestamp)),
    h("span", { class: "where" }, `${record.partition} : ${record.offset}`),
    record.error ? h("span", { class: "value bad-text" }, record.error)
      : record.control ? h("span", { class: "value" }, badge(`transaction ${record.control}`, record.control === "abort" ? "bad" : "good"))
        : [h("span", { class: "key" }, preview(record.key)), h("span", { class: "value" }, decodedPreview(record.value, avro))]);
  const details = h("details", { class: "message" }, summary);
  details.addEventListener("toggle", () => {
    if (details.open && details.children.length === 1) details.append(inside(topic, record, avro));
  });
  if (!onchoose) return details;
  return h("div", { class: "line" }, h("input", { type: "checkbox", checked: chosen, onchange: (event) => onchoose(event.target.checked),
    "aria-label": `Choose message ${record.offset} of partition ${record.partition}` }), details);
}

function decodedPreview(field, avro) {
  const read = decode(field, avro);
  return read && !read.error ? JSON.stringify(read.value).slice(0, 300) : preview(field);
}

// The value by the schema; null where there is none, or nothing to read.
function decode(field, avro) {
  if (!avro || !field || field.cut) return null;
  try {
    return { value: avro(rawBytes(field)) };
  } catch (error) {
    if (!(error instanceof AvroError)) throw error;
    return { error: error.message };
  }
}

function rawBytes(field) {
  return field.text !== undefined ? new TextEncoder().encode(field.text)
    : Uint8Array.from(field.hex.match(/../g) ?? [], (pair) => parseInt(pair, 16));
}

function inside(topic, record, avro) {
  const box = h("div", { class: "inside" });
  draw(record);
  return box;

  function draw(now) {
    fill(box,
      "value" in now ? [fieldView("Key", now.key), fieldView("Value", now.value, avro)] : null,
      isCut(now) ? h("p", {}, h("button", { type: "button", onclick: whole }, "Show more of it")) : null,
      now.headers?.length ? h("section", {}, h("h2", {}, "Headers"),
        now.headers.map((header) => h("div", { class: "header" }, h("code", {}, header.name), " ", headerValue(header.value))),
        now.more_headers ? h("p", { class: "muted" }, `and ${count(now.more_headers)} more`) : null) : null,
      h("section", {}, h("h2", {}, "Written"), facts(now)),
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

function fieldView(title, field, avro) {
  if (field === null) return h("section", {}, h("h2", {}, title), h("span", { class: "null" }, "null"));
  const content = h("div", { class: "content" });
  const forms = [];
  const read = decode(field, avro);
  if (read) forms.push(["Avro", () => read.error ? h("p", { class: "bad-text" }, `Not by this schema: ${read.error}`) : tree(read.value)]);
  const parsed = field.text !== undefined && !field.cut ? parse(field.text) : undefined;
  if (parsed !== undefined && typeof parsed === "object" && parsed !== null && !(parsed instanceof Digits)) forms.push(["JSON", () => tree(parsed)]);
  if (field.text !== undefined) forms.push(["Text", () => h("pre", {}, field.text)]);
  forms.push(["Hex", () => h("pre", { class: "hex" }, dump(field))]);
  const buttons = forms.map(([name, draw]) => h("button", { type: "button", class: "small", "aria-pressed": "false", onclick: () => {
    for (const each of buttons) each.setAttribute("aria-pressed", String(each.textContent === name));
    fill(content, draw());
  } }, name));
  buttons[0].setAttribute("aria-pressed", "true");
  fill(content, forms[0][1]());
  return h("section", {}, h("h2", {}, title, " ", h("span", { class: "muted" }, bytes(field.size), field.cut ? ", cut" : "")),
    h("div", { class: "forms" }, buttons, copyButton(() => field.text ?? field.hex)), content);
}

// A number as it is written: 9007199254740993 must not become 9007199254740992.
class Digits {
  constructor(source) {
    this.source = source;
  }
}

function parse(text) {
  try {
    return JSON.parse(text, (name, value, context) => (typeof value === "number" && context?.source ? new Digits(context.source) : value));
  } catch {
    return undefined;
  }
}

// JSON, folded and coloured. Deep or long parts are drawn when they are opened.
function tree(value, name, depth = 0) {
  const label = name === undefined ? null : [h("span", { class: "json-name" }, JSON.stringify(name)), ": "];
  if (value instanceof Digits) return h("div", { class: "json" }, label, h("span", { class: "json-number" }, value.source));
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
  const data = rawBytes(field);
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
