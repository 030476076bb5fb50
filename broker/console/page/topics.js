// The list of topics, and one topic: its partitions, its settings and where they come from, its files.

import { h, fill, update, table, pager, badge, copyButton, emptyState } from "./dom.js";
import { post } from "./live.js";
import { count, rate, bytes, link, plural, settingInWords } from "./words.js";

export function topicColumns(context) {
  const { rates } = context;
  return [
    ["Topic", (row) => h("a", { href: link("topics", row.name), key: `topic ${row.name}`, "data-row": "" }, row.name)],
    ["Messages/s", (row) => rate(rates.add(`in ${row.name}`, row.traffic.messages_in)), "number"],
    ["In", (row) => perSecond(rates.add(`bytes in ${row.name}`, row.traffic.bytes_in)), "number"],
    ["Out", (row) => perSecond(rates.add(`bytes out ${row.name}`, row.traffic.bytes_out)), "number"],
    ["Messages", (row) => here(row, count(row.messages)), "number"],
    ["Size", (row) => here(row, bytes(row.size)), "number"],
    ["Partitions", (row) => [count(row.partitions), row.replicas > 1 ? h("span", { class: "muted" }, ` × ${row.replicas}`) : null,
      row.under_replicated ? [" ", badge(`${row.under_replicated} not in sync`, "bad")] : null], "number"],
  ];
}

// What is known of a topic, some of whose partitions other processes have.
function here(row, text) {
  return row.elsewhere === row.partitions ? "–" : row.elsewhere ? `at least ${text}` : text;
}

function perSecond(value) {
  return value === undefined ? "–" : value === 0 ? "0" : `${bytes(value)}/s`;
}

export function noTopics(context) {
  return emptyState("No topics yet", "A client that produces makes one. Or try it from a terminal:",
    context.command("topics create greetings -p 3"),
    `echo "Hello, K." | ${context.command("produce greetings")}`);
}

export function topics(root, context) {
  const list = h("div");
  const search = h("input", { type: "search", placeholder: "Find a topic", "aria-label": "Find a topic", autocomplete: "off" });
  const internal = h("input", { type: "checkbox", id: "internal" });
  const create = h("div");
  root.append(
    h("div", { class: "bar" }, h("h1", {}, "Topics"), search,
      h("label", { for: "internal" }, internal, " internal ones too"), create),
    list);
  let page = 0;
  let last = null;

  function ask() {
    context.watch({ topics: { view: "topics", page, search: search.value, internal: internal.checked } }, (news) => {
      if (news.topics) last = news.topics;
      if (!last) return;
      if (context.about?.writes && !create.firstChild) create.append(creation());
      const nothing = search.value ? h("p", { class: "muted" }, "No topic has this in its name.") : noTopics(context);
      update(list, table(topicColumns(context), last.rows, { empty: nothing }), pager(last, (to) => { page = to; ask(); }));
    });
  }

  search.addEventListener("input", () => { page = 0; ask(); });
  internal.addEventListener("change", () => { page = 0; ask(); });
  ask();
}

function creation() {
  const name = h("input", { placeholder: "new-topic", "aria-label": "Name of a new topic", autocomplete: "off" });
  const partitions = h("input", { type: "number", min: 1, value: 3, "aria-label": "Partitions", class: "short" });
  const says = h("span", { role: "status", class: "muted" });
  return h("form", { class: "inline", onsubmit: async (event) => {
    event.preventDefault();
    try {
      await post("/api/topics/create", { name: name.value, partitions: Number(partitions.value) });
      location.hash = link("topics", name.value);
    } catch (error) {
      says.textContent = error.message;
    }
  } }, name, partitions, h("button", {}, "Create"), says);
}

export function topicHead(name, current) {
  return h("div", { class: "bar" },
    h("h1", {}, name),
    h("nav", { class: "tabs", "aria-label": "Of this topic" },
      h("a", { href: link("topics", name), "aria-current": current === "topic" ? "page" : null }, "Partitions and settings"),
      h("a", { href: link("topics", name, "messages"), "aria-current": current === "messages" ? "page" : null }, "Messages")));
}

export function topic(root, context) {
  const [name] = context.params;
  const body = h("div");
  const actions = h("div");
  root.append(topicHead(name, "topic"), body, actions);
  let page = 0;
  let segments = null;
  let everything = false;
  let last = null;

  function ask() {
    const question = { view: "topic", name, page };
    if (segments !== null) question.segments = segments;
    context.watch({ topic: question }, (news) => {
      if (news.topic) last = news.topic;
      if (last) draw();
    });
  }

  function draw() {
    if (last.error) {
      fill(body, h("p", { class: "problems" }, last.error));
      fill(actions);
      return;
    }
    const perSecondIn = context.rates.add(`in ${name}`, last.traffic.messages_in);
    const changed = last.configs.filter((entry) => entry.source !== "DEFAULT_CONFIG");
    update(body,
      h("p", { class: "facts" },
        last.elsewhere ? `Of ${plural(last.partitions - last.elsewhere, "partition")} with a copy here: ` : "",
        `${plural(last.messages, "message")}, ${bytes(last.size)}, ${rate(perSecondIn)} in per second. `,
        h("span", { class: "muted" }, `id ${last.id}`)),
      last.group_list.length
        ? h("p", {}, "Read by ", last.group_list.map((group, index) => [index ? ", " : "", h("a", { href: link("groups", group) }, group)]))
        : h("p", { class: "muted" }, "No group has committed offsets here."),
      h("h2", {}, "Partitions"),
      table(partitionColumns(), last.partition_list),
      pager(last, (to) => { page = to; ask(); }),
      last.segments ? segmentList(last.segments) : null,
      h("h2", {}, "Settings"),
      table(settingColumns(everything ? last.configs : changed), everything ? last.configs : changed, {
        empty: h("p", { class: "muted" }, "Everything has its default."),
      }),
      h("p", {}, h("button", { type: "button", key: "all", onclick: () => { everything = !everything; draw(); } },
        everything ? "Only what differs from its default" : `All ${last.configs.length} settings`), " ",
        copyButton(() => context.command(`configs describe topic ${name}`), "Copy the command")));
    if (context.about?.writes && !last.internal && !actions.firstChild) {
      if (last.may.alter) actions.append(growing());
      if (last.may.alter_configs) actions.append(altering());
      if (last.may.delete) actions.append(emptying(), deletion());
    }
  }

  // A form below a line that opens it; what it does answers with words.
  function action(title, words, inputs, button, act, kind = "") {
    const says = h("span", { role: "status", class: "muted" });
    return h("details", { class: kind && "danger" }, h("summary", {}, title),
      h("form", { class: "inline", onsubmit: async (event) => {
        event.preventDefault();
        try {
          says.textContent = await act() ?? "";
        } catch (error) {
          says.textContent = error.message;
        }
      } }, words ? h("p", { class: "muted" }, words) : null, inputs, h("button", { class: kind }, button), says));
  }

  function growing() {
    const to = h("input", { type: "number", min: last.partitions + 1, value: last.partitions + 1, "aria-label": "Partitions it should have", class: "short" });
    return action("Add partitions", "Messages that are there stay where they are; keys go to other partitions from then on.", to, "Add", async () => {
      await post("/api/topics/grow", { name, partitions: Number(to.value) });
      return `It has ${to.value} partitions now.`;
    });
  }

  function altering() {
    const setting = h("select", { "aria-label": "Setting" }, last.configs.map((entry) => h("option", { value: entry.name }, entry.name)));
    const value = h("input", { "aria-label": "Value", placeholder: "empty: its default", autocomplete: "off" });
    const show = () => { value.value = last.configs.find((entry) => entry.name === setting.value)?.value ?? ""; };
    setting.addEventListener("change", show);
    show();
    return action("Change a setting", "", [setting, value], "Change", async () => {
      await post("/api/topics/alter", { name, configs: { [setting.value]: value.value === "" ? null : value.value } });
      return `${setting.value} is ${value.value === "" ? "its default" : value.value} now.`;
    });
  }

  function emptying() {
    const which = h("select", { "aria-label": "Of which partition" }, h("option", { value: "" }, "all partitions"),
      Array.from({ length: Math.min(last.partitions, 1000) }, (_, index) => h("option", { value: index }, `partition ${index}`)));
    const offset = h("input", { type: "number", min: -1, value: -1, "aria-label": "Below which offset", class: "short" });
    return action("Delete messages", "Those below an offset go, for everybody and for good; -1 stands for all there are.",
      [which, h("label", {}, "below offset ", offset)], "Delete messages", async () => {
        const partition = which.value === "" ? null : Number(which.value);
        const { partitions } = await post("/api/messages/delete", { topic: name, partition, offset: Number(offset.value) });
        return `Gone. First offsets now: ${partitions.slice(0, 5).map((each) => each.first_offset).join(", ")}${partitions.length > 5 ? "…" : ""}`;
      }, "bad");
  }

  function partitionColumns() {
    return [
      ["Partition", (row) => count(row.partition), "number"],
      ["Leader", (row) => row.leader < 0 ? badge("none", "bad") : count(row.leader), "number",
        "The broker that producers write to, and that consumers read from."],
      ["In sync", (row) => [row.isr.join(", "), row.isr.length < row.replicas.length ? [" ", badge(`of ${row.replicas.length}`, "bad")] : null,
        row.elsewhere ? [" ", h("span", { class: "muted" }, "no copy here")] : null], "",
        "The brokers whose copy is complete (the ISR). With acks=all a producer waits until all of them have its message."],
      ["First offset", (row) => count(row.log_start_offset), "number", "Older messages have been deleted."],
      ["High watermark", (row) => count(row.high_watermark), "number", "Consumers get the messages below this offset: all in-sync copies have them."],
      ["Last stable", (row) => row.last_stable_offset < row.high_watermark
        ? badge(count(row.last_stable_offset), "warn") : count(row.last_stable_offset), "number",
        "No transaction is open below this offset. Consumers with isolation.level=read_committed get no further."],
      ["Size", (row) => bytes(row.size), "number"],
      ["Segments", (row) => row.elsewhere ? "–" : h("button", { type: "button", class: "link", key: `p${row.partition}`, "data-row": "",
        "aria-label": `Files of partition ${row.partition}`, "aria-expanded": String(segments === row.partition),
        onclick: () => { segments = segments === row.partition ? null : row.partition; ask(); } }, count(row.segments)), "number",
      "The files that the messages are in. A click shows them."],
      ["Waiting", (row) => count(row.waiting_fetches), "number", "Fetch requests of consumers that have read everything, and wait for the next message."],
    ];
  }

  function deletion() {
    const typed = h("input", { placeholder: name, "aria-label": "Name of the topic, to confirm", autocomplete: "off" });
    const says = h("span", { role: "status", class: "muted" });
    return h("details", { class: "danger" }, h("summary", {}, "Delete this topic"),
      h("form", { class: "inline", onsubmit: async (event) => {
        event.preventDefault();
        if (typed.value !== name) {
          says.textContent = "Type its name first: all its messages go.";
          return;
        }
        try {
          await post("/api/topics/delete", { name });
          location.hash = link("topics");
        } catch (error) {
          says.textContent = error.message;
        }
      } }, typed, h("button", { class: "bad" }, "Delete"), says));
  }

  ask();
}

function settingColumns(rows) {
  const columns = [
    ["Setting", (row) => h("code", {}, row.name)],
    ["Value", (row) => [h("code", {}, row.value ?? "(hidden)"), " ", h("span", { class: "muted" }, settingInWords(row.name, row.value))]],
    ["From", (row) => SOURCES[row.source] ?? row.source],
  ];
  if (rows.some((row) => row.overrides.length)) {
    columns.push(["Instead of", (row) => h("span", { class: "muted" }, row.overrides.filter((value) => value !== null).join(", "))]);
  }
  return columns;
}

const SOURCES = {
  DYNAMIC_TOPIC_CONFIG: "this topic",
  DYNAMIC_BROKER_CONFIG: "the broker, while it runs",
  DYNAMIC_DEFAULT_BROKER_CONFIG: "all brokers, while they run",
  STATIC_BROKER_CONFIG: "the broker's settings at its start",
  DEFAULT_CONFIG: "the default",
};

function segmentList(segments) {
  return [h("h3", {}, `Files of partition ${segments.partition}`),
    table([
      ["From offset", (row) => count(row.base_offset), "number"],
      ["To", (row) => count(row.end_offset), "number"],
      ["Size", (row) => bytes(row.size), "number"],
      ["File", (row) => h("code", {}, row.path)],
    ], segments.files)];
}
