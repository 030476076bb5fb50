// The messages of a topic: newest first, from an offset or a time on, or as they come. Whatever they contain is text.

import { h, fill, isRead, prepend, emptyState } from "./dom.js";
import { get, post, tail } from "./live.js";
import { count, plural, elsewhereWords, forInput } from "./words.js";
import { topicHead } from "./topics.js";
import { avroReader } from "./avro.js";
import { isCut, line, row } from "./message.js";

const MOST_ON_PAGE = 1000;
const MOST_LIVE = 200;

export function messages(root, context) {
  const [topic] = context.params;
  const partition = h("select", { "aria-label": "Partition" }, h("option", { value: "all" }, "all partitions"));
  const order = h("select", { "aria-label": "Which messages" },
    [["newest", "newest first"], ["live", "live"], ["offset", "from an offset"], ["time", "from a time"]]
      .map(([value, text]) => h("option", { value }, text)));
  const offset = h("input", { type: "number", min: 0, value: 0, "aria-label": "Offset", hidden: true, class: "short" });
  const when = h("input", { type: "datetime-local", step: 1, "aria-label": "Time", hidden: true, value: forInput(Date.now() - 3600000) });
  const search = h("input", { type: "search", placeholder: "Search keys, values, headers", "aria-label": "Search keys, values and headers", autocomplete: "off" });
  const says = h("p", { role: "status", class: "muted" });
  const heads = h("div", { class: "heads", hidden: true }, ["Time", "Partition : offset", "Key", "Value"].map((each) => h("span", {}, each)));
  const list = h("div", { class: "messages" });
  const further = h("p");
  const writing = h("div");
  const replaying = h("div");
  let avro = remembered(topic);
  const chosen = new Map();
  root.append(topicHead(topic, "messages"),
    h("form", { class: "inline", onsubmit: (event) => { event.preventDefault(); begin(); } },
      order, offset, when, partition, search, h("button", {}, "Show"),
      h("button", { type: "button", title: "What is shown, as JSON lines", onclick: download }, "Download")),
    writing, schemaForm(), replaying, says, heads, list, further);

  let shown = [];
  let stop = null;
  let asked = 0;
  let writes = context.about?.writes ?? false;

  context.watch({ topic: { view: "topic", name: topic } }, (news) => {
    if (!writes && context.about?.writes) {
      writes = true;
      if (shown.length) draw();
    }
    if (!news.topic || news.topic.error) return;
    for (let index = partition.length - 1; index < news.topic.partitions; index += 1) {
      partition.append(h("option", { value: index }, `partition ${index}`));
    }
    if (news.topic.may.write && !news.topic.internal && !writing.firstChild) writing.append(producing(news.topic));
  });

  order.addEventListener("change", () => {
    offset.hidden = order.value !== "offset";
    when.hidden = order.value !== "time";
    if (order.value !== "offset" && order.value !== "time") begin();
  });
  partition.addEventListener("change", () => begin());

  function begin() {
    asked += 1;
    says.removeAttribute("aria-live");
    if (stop) stop();
    stop = null;
    shown = [];
    showHeads();
    fill(list);
    fill(further);
    if (order.value === "live") live();
    else more(null, asked, 0);
  }

  function showHeads() {
    heads.hidden = !shown.length;
    heads.classList.toggle("with-boxes", writes);
  }

  function question() {
    const query = { topic, partition: partition.value, search: search.value };
    if (order.value === "offset") query.offset = offset.value || 0;
    if (order.value === "time") query.time = new Date(when.value || Date.now()).getTime();
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
    if (found.elsewhere.length) says.textContent = `${says.textContent.replace(/\.?$/, ".")} ${elsewhereWords(found.elsewhere)}`;
    else if (!shown.length) fill(list, nothing());
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
    // A screen reader would say it once a second.
    says.setAttribute("aria-live", "off");
    let total = 0;
    let skipped = 0;
    let waiting = [];
    stop = tail(question(), (news) => {
      if (news.elsewhere) {
        says.textContent += ` ${elsewhereWords(news.elsewhere)}`;
        return;
      }
      if (news.error) {
        stop();
        stop = null;
        says.textContent = `${news.error}.`;
        return;
      }
      total += news.records.length + news.skipped;
      skipped = news.skipped;
      waiting = [...news.records.reverse(), ...waiting].slice(0, MOST_LIVE);
      drawLive();
    });
    // Of an element that is unfolded, nobody further out hears, but whoever listens on the way.
    list.addEventListener("toggle", drawLive, true);
    const close = stop;
    stop = () => {
      list.removeEventListener("toggle", drawLive, true);
      close();
    };

    function drawLive() {
      if (!total) return;
      const words = `${plural(total, "message")} since you opened it`;
      if (isRead(list)) {
        says.textContent = `${words}. New ones wait while a message is unfolded.`;
        return;
      }
      shown = [...waiting, ...shown].slice(0, MOST_LIVE);
      prepend(list, waiting.map(oneRow), MOST_LIVE);
      waiting = [];
      showHeads();
      says.textContent = words + (skipped ? `; too many to show all: ${count(skipped)} were left out just now.` : ".");
    }
  }

  function add(records) {
    shown = [...shown, ...records].slice(0, MOST_ON_PAGE);
    list.append(...records.map(oneRow));
    showHeads();
  }

  function draw() {
    fill(list, shown.map(oneRow));
    showHeads();
  }

  function oneRow(record) {
    const id = `${record.partition}:${record.offset}`;
    return row(topic, record, {
      avro,
      chosen: chosen.has(id),
      onchoose: writes && record.value !== undefined ? (yes) => {
        if (yes) chosen.set(id, { partition: record.partition, offset: record.offset });
        else chosen.delete(id);
        drawReplay();
      } : null,
    });
  }

  const replayTo = h("input", { value: topic, "aria-label": "Topic to write them to", autocomplete: "off" });

  // What is chosen can be written again: to this topic or another one.
  function drawReplay() {
    if (!chosen.size) {
      fill(replaying);
      return;
    }
    const told = h("span", { role: "status", class: "muted" });
    fill(replaying, h("form", { class: "inline replay", onsubmit: async (event) => {
      event.preventDefault();
      try {
        const answer = await post("/api/messages/replay", { from: topic, to: replayTo.value, records: [...chosen.values()] });
        told.textContent = `Written to ${answer.topic}: ${answer.written.map((each) => `partition ${each.partition} from offset ${each.offset}`).join(", ")}.`;
        chosen.clear();
        for (const box of list.querySelectorAll("input[type=checkbox]")) box.checked = false;
      } catch (error) {
        told.textContent = error.message;
      }
    } }, `Write ${plural(chosen.size, "message")} again, to `, replayTo, h("button", {}, "Replay"), told));
  }

  // A schema for the values of this topic, which this browser remembers.
  function schemaForm() {
    const text = h("textarea", { rows: 6, class: "code", "aria-label": "Avro schema", placeholder: '{"type": "record", "name": "Order", "fields": […]}', value: localStorage.getItem(`avro ${topic}`) ?? "" });
    const file = h("input", { type: "file", accept: ".avsc,.json", "aria-label": "A file with a schema", onchange: async () => {
      if (file.files[0]) text.value = await file.files[0].text();
    } });
    const told = h("span", { role: "status", class: "muted" });
    return h("details", {}, h("summary", {}, "Avro schema of the values"),
      h("form", { onsubmit: (event) => {
        event.preventDefault();
        try {
          avro = text.value.trim() ? avroReader(text.value) : null;
          if (avro) localStorage.setItem(`avro ${topic}`, text.value);
          else localStorage.removeItem(`avro ${topic}`);
          told.textContent = avro ? "Values are read with it, here and when you come back." : "Values are shown as they are.";
          draw();
        } catch (error) {
          told.textContent = error.message;
        }
      } }, text, h("div", { class: "inline" }, file, h("button", {}, "Use it"), told)));
  }

  // Long ones are cut in the list: they are asked for again.
  async function download() {
    const lines = [];
    try {
      for (const record of [...shown]) {
        const { partition: from, offset: at } = record;
        lines.push(line(isCut(record) ? await get("/api/message", { topic, partition: from, offset: at }) : record));
        if (isCut(record)) says.textContent = `Fetching long messages… ${lines.length} of ${shown.length}`;
      }
    } catch (error) {
      says.textContent = error.message;
      return;
    }
    says.textContent = `${plural(lines.length, "message")} in ${topic}.jsonl.`;
    const address = URL.createObjectURL(new Blob([`${lines.join("\n")}\n`], { type: "application/jsonl" }));
    const anchor = h("a", { href: address, download: `${topic}.jsonl` });
    anchor.click();
    URL.revokeObjectURL(address);
  }

  function producing(about) {
    const key = h("input", { placeholder: "key", "aria-label": "Key", autocomplete: "off" });
    const value = h("textarea", { placeholder: "value", "aria-label": "Value", rows: 2 });
    const headers = h("input", { placeholder: "name=value, …", "aria-label": "Headers", autocomplete: "off" });
    const to = h("input", { type: "number", min: 0, max: about.partitions - 1, value: 0, "aria-label": "Partition", class: "short" });
    const told = h("span", { role: "status", class: "muted" });
    return h("details", {}, h("summary", {}, "Produce one"),
      h("form", { class: "inline", onsubmit: async (event) => {
        event.preventDefault();
        try {
          const body = { topic, partition: Number(to.value), key: key.value || null, value: value.value, headers: pairs(headers.value) };
          const written = await post("/api/messages/produce", body);
          told.textContent = `Written: partition ${written.partition}, offset ${written.offset}.`;
          if (order.value === "newest") begin();
        } catch (error) {
          told.textContent = error.message;
        }
      } }, key, value, headers, h("label", {}, "partition ", to), h("button", {}, "Produce"), told));
  }

  begin();
  return () => { if (stop) stop(); };
}

function pairs(text) {
  return text.split(",").map((each) => each.trim()).filter(Boolean).map((each) => {
    const at = each.indexOf("=");
    return at < 0 ? [each, ""] : [each.slice(0, at).trim(), each.slice(at + 1).trim()];
  });
}

function remembered(topic) {
  try {
    const text = localStorage.getItem(`avro ${topic}`);
    return text ? avroReader(text) : null;
  } catch {
    return null;
  }
}
