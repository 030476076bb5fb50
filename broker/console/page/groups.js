// Consumer groups: how far behind they are, who is in them, and moving their offsets.

import { h, fill, update, table, pager, badge, spark, emptyState } from "./dom.js";
import { post } from "./live.js";
import { rebalanceStory } from "./story.js";
import { clockTime, count, link, listed, plural, ranges, span, time } from "./words.js";

const KINDS = { Stable: "good", Assigning: "warn", Reconciling: "warn", Empty: "", PreparingRebalance: "warn", CompletingRebalance: "warn", Dead: "bad" };
const STATES = { Stable: "stable", Assigning: "assigning", Reconciling: "reconciling", Empty: "empty", PreparingRebalance: "rebalancing", CompletingRebalance: "assigning", Dead: "dead" };

// A curve fills its place once it has so many points.
const FEW = 40;
const SECONDS = 60;
const MOST_PLANNED = 50;

function stateOf(row) {
  return badge(STATES[row.state] ?? row.state, KINDS[row.state]);
}

export function groupColumns() {
  return [
    ["Group", (row) => h("a", { href: link("groups", row.name), key: `group ${row.name}`, "data-row": "" }, row.name)],
    ["State", (row) => [stateOf(row), row.type === "classic" || row.type === "consumer" ? null : [" ", badge(row.type)]]],
    ["Lag", (row) => h("span", { class: row.lag ? "strong" : "muted" }, row.elsewhere ? `at least ${count(row.lag)}` : count(row.lag)), "number"],
    ["Members", (row) => count(row.members), "number"],
    ["Topics", (row) => row.topics.map((topic, index) => [index ? ", " : "", h("a", { href: link("topics", topic) }, topic)])],
  ];
}

export function noGroups(context) {
  if (context.about?.other_brokers.length) return h("p", { class: "muted" }, "This broker coordinates no groups.");
  return emptyState("No groups yet", "A consumer with a group.id makes one. Or try it from a terminal:",
    context.command("consume greetings -g castle --from-beginning"));
}

export function groups(root, context) {
  const list = h("div");
  const search = h("input", { type: "search", placeholder: "Find a group", "aria-label": "Find a group", autocomplete: "off" });
  root.append(h("div", { class: "bar" }, h("h1", {}, "Groups"), search), list);
  let page = 0;
  let last = null;

  function ask() {
    context.watch({ groups: { view: "groups", page, search: search.value } }, (news) => {
      if (news.groups) last = news.groups;
      if (!last) return;
      const nothing = search.value ? h("p", { class: "muted" }, "No group has this in its name.") : noGroups(context);
      update(list, table(groupColumns(context), last.rows, { empty: nothing }), pager(last, (to) => { page = to; ask(); }));
    });
  }

  search.addEventListener("input", () => { page = 0; ask(); });
  ask();
}

export function group(root, context) {
  const [name] = context.params;
  const body = h("div");
  const actions = h("div");
  root.append(h("div", { class: "bar" }, h("h1", {}, name)), body, actions);
  let last = null;
  let before = { times: [], messages: [], late_ms: [] };

  let page = 0;
  const curves = new Map();

  function ask() {
    context.watch({ group: { view: "group", name, page }, lag: { view: "lag", name } }, (news) => {
      if (news.group) last = news.group;
      if (news.lag?.times) before = news.lag;
      if (!last) return;
      if (last.error) {
        fill(body, h("p", { class: "problems" }, last.error));
        fill(actions);
        return;
      }
      for (const row of last.offsets) curveOf(row).push(row.lag ?? 0);
      draw();
      if (!actions.firstChild) {
        if (last.may.read) actions.append(reset(name));
        if (last.may.delete) actions.append(deletion(name));
      }
    });
  }

  // The lag of a partition since the page was opened.
  function curveOf(row) {
    const place = `${row.topic}/${row.partition}`;
    const curve = curves.get(place) ?? [];
    curves.set(place, curve);
    if (curve.length > SECONDS) curve.shift();
    return curve;
  }

  function draw() {
    const now = context.about.now_ms;
    const since = before.times.length ? `Lag in the last ${span(now - before.times[0])}` : "Lag";
    const late = lateness(last, before);
    const slots = Math.max(before.times.length + 1, FEW);
    const most = Math.max(...last.offsets.map((row) => Math.max(...curveOf(row), 1)), 1);
    update(body,
      h("div", { class: "tiles" },
        h("div", { class: "tile wide" },
          h("div", { class: "label" }, "Lag"),
          h("div", { class: "figure" }, count(last.lag)),
          spark([...before.messages, last.lag], { width: 420, height: 60, slots, label: since }),
          h("div", { class: "muted" }, "messages behind", last.elsewhere ? `, without ${plural(last.elsewhere, "partition")} that other processes have` : "", before.times.length > 1 ? `; since ${clockTime(before.times[0]).slice(0, 8)}` : "")),
        h("div", { class: "tile" },
          h("div", { class: "label" }, "Lag in time"),
          h("div", { class: "figure" }, late === null ? "–" : span(late)),
          spark([...before.late_ms, late].map((each) => each ?? 0), { slots, label: since.replace("Lag", "Lag in time") }),
          h("div", { class: "muted" }, "age of the oldest message not read")),
        h("div", { class: "tile" },
          h("div", { class: "label" }, "State"),
          h("div", { class: "figure" }, stateOf(last)),
          h("div", { class: "muted" }, last.state_since_ms ? `for ${span(now - last.state_since_ms)}; ` : "", `${last.type === "classic" ? "generation" : "epoch"} ${count(last.generation)}`)),
        h("div", { class: "tile" },
          h("div", { class: "label" }, "Members"),
          h("div", { class: "figure" }, count(last.members)),
          h("div", { class: "muted" }, last.protocol ? `assigned by ${last.protocol}` : last.type === "classic" ? "nobody has joined" : last.type === "share" ? "share their partitions" : "assigned by the broker",
            `; coordinated by broker ${last.coordinator}`))),
      h("h2", {}, "Offsets"),
      table([
        ["Topic", (row) => h("a", { href: link("topics", row.topic), key: `${row.topic}/${row.partition}`, "data-row": "" }, row.topic)],
        ["Partition", (row) => count(row.partition), "number"],
        ["Lag", (row) => count(row.lag), "number", "How many messages are there that the group has not committed. What it has read and not committed yet counts, too."],
        ["In time", (row) => row.late_ms === undefined || row.late_ms === null ? "–" : span(row.late_ms), "number", "How long ago the oldest of these messages was written."],
        ["Last minute", (row) => spark(curveOf(row), { width: 90, height: 22, slots: SECONDS, top: most, label: `lag of ${row.topic}-${row.partition} in the last minute` }), "curve",
          "The lag of each partition, all at the same scale, since you opened this page."],
        ["Committed", (row) => count(row.offset), "number", "The offset at which the group goes on after a restart or a rebalance."],
        ["End", (row) => count(last.ends[`${row.topic}/${row.partition}`]?.[1]), "number", "The partition's high watermark: the next message gets this offset, or a later one."],
        ["Last commit", (row) => row.commit_timestamp === null ? "–" : `${span(now - row.commit_timestamp)} ago`],
        ["Owner", (row) => ownerOf(last, row)],
      ], last.offsets, { empty: h("p", { class: "muted" }, "Nothing has been committed yet.") }),
      pager(last, (to) => { page = to; ask(); }),
      h("h2", {}, "Members"),
      table([
        ["Member", (row) => h("code", { title: row.member_id }, short(row.member_id))],
        ["Client", (row) => row.client_id],
        ["From", (row) => row.client_host],
        ["Partitions", (row) => owned(row)],
        ["Last heartbeat", (row) => row.waits_for_join ? badge("waits to join", "warn") : row.waits_for_sync ? badge("waits for its part", "warn")
          : row.heard_at_ms ? `${span(now - row.heard_at_ms)} ago` : "–"],
        ["Session timeout", (row) => row.session_timeout_ms === undefined ? "–" : span(row.session_timeout_ms), "number",
          "After so long without a heartbeat a member counts as dead, and its partitions go to others."],
      ], last.member_list, { empty: h("p", { class: "muted" }, "Nobody is in this group now.") }),
      last.rebalances.length ? [h("h2", {}, "Its last rebalances"), last.rebalances.map(rebalanceStory)] : null);
  }

  ask();
}

function lateness(group, before) {
  if (group.pages > 1) return before.late_ms.at(-1) ?? null; // of all partitions, not of those on the page
  const known = group.offsets.map((row) => row.late_ms).filter((each) => each !== undefined && each !== null);
  if (known.length) return Math.max(...known);
  return group.lag === 0 ? 0 : null;
}

function ownerOf(group, row) {
  const owners = group.member_list.filter((each) => each.assignment?.[row.topic]?.includes(row.partition));
  // Only in a share group are there several.
  return owners.length ? listed(owners.map((each) => each.client_id || short(each.member_id))) : h("span", { class: "muted" }, "nobody");
}

function owned(member) {
  if (!member.assignment) return "–";
  const parts = Object.entries(member.assignment).map(([topic, partitions]) => `${topic}: ${ranges(partitions)}`);
  return parts.length ? parts.join("; ") : h("span", { class: "muted" }, "nothing");
}

function short(id) {
  return id.length > 28 ? `${id.slice(0, 26)}…` : id;
}

function reset(name) {
  const to = h("select", { "aria-label": "To where" },
    [["earliest", "the beginning"], ["latest", "the end"], ["offset", "an offset"], ["shift", "by a number"], ["time", "a time"]]
      .map(([value, text]) => h("option", { value }, text)));
  const number = h("input", { type: "number", value: 0, "aria-label": "Offset, or number of messages", hidden: true, class: "short" });
  const when = h("input", { type: "datetime-local", "aria-label": "Time", hidden: true });
  const plan = h("div", { role: "status" });
  to.addEventListener("change", () => {
    number.hidden = to.value !== "offset" && to.value !== "shift";
    when.hidden = to.value !== "time";
    fill(plan);
  });
  const body = (preview) => ({
    name, to: to.value, offset: Number(number.value), time: new Date(when.value || Date.now()).getTime(), preview,
  });

  async function ask(preview) {
    try {
      const answer = await post("/api/groups/reset", body(preview));
      fill(plan,
        table([
          ["Topic", (row) => row.topic], ["Partition", (row) => count(row.partition), "number"],
          ["From", (row) => count(row.from), "number"], ["To", (row) => count(row.to), "number"],
          ["Change", (row) => `${row.to > row.from ? "+" : ""}${count(row.to - row.from)}`, "number"],
        ], answer.plan.slice(0, MOST_PLANNED)),
        answer.plan.length > MOST_PLANNED ? h("p", { class: "muted" }, `and ${count(answer.plan.length - MOST_PLANNED)} more`) : null,
        preview
          ? h("button", { type: "button", class: "bad", onclick: () => ask(false) }, `Move ${plural(answer.plan.length, "offset")}`)
          : h("p", {}, `Moved at ${time(Date.now())}.`));
    } catch (error) {
      fill(plan, h("p", { class: "problems" }, error.message));
    }
  }

  return h("details", {}, h("summary", {}, "Move its offsets"),
    h("form", { class: "inline", onsubmit: (event) => { event.preventDefault(); ask(true); } },
      "to ", to, number, when, h("button", {}, "Preview")), plan);
}

function deletion(name) {
  const says = h("span", { role: "status", class: "muted" });
  return h("details", { class: "danger" }, h("summary", {}, "Delete this group"),
    h("p", {}, "Its offsets go with it. It must have no members. ",
      h("button", { type: "button", class: "bad", onclick: async () => {
        try {
          await post("/api/groups/delete", { name });
          location.hash = link("groups");
        } catch (error) {
          says.textContent = error.message;
        }
      } }, "Delete"), " ", says));
}
