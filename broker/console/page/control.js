// With --control: faults, the clock, snapshots and a fresh start, at a click. It is the control interface, below /api/control.

import { h, update, table, badge } from "./dom.js";
import { get, post, send } from "./live.js";
import { count, span, time } from "./words.js";

const BASE = "/api/control";
const ERRORS = ["NOT_LEADER_OR_FOLLOWER", "COORDINATOR_NOT_AVAILABLE", "NOT_COORDINATOR", "REQUEST_TIMED_OUT", "UNKNOWN_TOPIC_OR_PARTITION",
  "NOT_ENOUGH_REPLICAS", "REBALANCE_IN_PROGRESS", "KAFKA_STORAGE_ERROR", "TOPIC_AUTHORIZATION_FAILED", "UNKNOWN_SERVER_ERROR"];

export function control(root, context) {
  const says = h("p", { role: "status", class: "muted" });
  const clock = h("section");
  const faults = h("section");
  const snapshots = h("section");
  const nodes = h("section");
  root.append(h("div", { class: "bar" }, h("h1", {}, "Control")), says, clock, faults, snapshots, nodes);
  let gone = false;

  // Does something, says so, and shows how things are then.
  async function act(words, work) {
    try {
      await work();
      says.textContent = `${words} (${time(Date.now()).slice(11, 19)})`;
    } catch (error) {
      says.textContent = error.message;
    }
    await look();
  }

  async function look() {
    if (gone) return;
    try {
      const [now, all, names] = await Promise.all([get(`${BASE}/clock`), get(`${BASE}/faults`), get(`${BASE}/snapshots`)]);
      drawClock(now);
      drawFaults(all);
      drawSnapshots(names);
    } catch (error) {
      says.textContent = error.message;
    }
  }

  const button = (text, words, work, kind = "") => h("button", { type: "button", class: kind, key: text, onclick: () => act(words, work) }, text);

  function drawClock(now) {
    const steps = [["10 s", 10], ["1 min", 60], ["1 h", 3600], ["1 day", 86400]];
    update(clock, h("h2", {}, "Clock"),
      h("p", {}, `It is ${time(now.now_ms)} for the broker`, now.ahead_ms ? `, ${span(now.ahead_ms)} ahead.` : ", as everywhere."),
      h("div", { class: "inline" }, "Move it on by ", steps.map(([text, seconds]) =>
        button(text, `The clock is ${text} further.`, () => post(`${BASE}/clock/advance`, { seconds })))));
  }

  const api = h("input", { placeholder: "any request", "aria-label": "Request", autocomplete: "off", class: "short" });
  const topic = h("input", { placeholder: "any topic", "aria-label": "Topic", autocomplete: "off", class: "short" });
  const effect = h("select", { "aria-label": "What happens" },
    [["error", "fails with"], ["delay_ms", "waits (ms)"], ["close", "is cut off"], ["throttle_ms", "is throttled (ms)"]]
      .map(([value, text]) => h("option", { value }, text)));
  const error = h("select", { "aria-label": "Error" }, ERRORS.map((each) => h("option", {}, each)));
  const ms = h("input", { type: "number", min: 1, value: 1000, "aria-label": "Milliseconds", class: "short", hidden: true });
  const times = h("input", { type: "number", min: 1, placeholder: "always", "aria-label": "How often", class: "short" });
  effect.addEventListener("change", () => {
    error.hidden = effect.value !== "error";
    ms.hidden = !effect.value.endsWith("_ms");
  });
  const form = h("form", { class: "inline", onsubmit: (event) => {
    event.preventDefault();
    const fault = { [effect.value]: effect.value === "error" ? error.value : effect.value === "close" ? "before" : Number(ms.value) };
    if (api.value) fault.api = api.value;
    if (topic.value) fault.topic = topic.value;
    if (times.value) fault.times = Number(times.value);
    act("The fault is active.", () => post(`${BASE}/faults`, fault));
  } }, api, " of ", topic, effect, error, ms, " ", times, " times ", h("button", {}, "Add"));

  function drawFaults(all) {
    update(faults, h("h2", {}, "Faults"), form,
      table([
        ["Number", (row) => count(row.id), "number"],
        ["Fault", (row) => h("code", {}, words(row))],
        ["Seen", (row) => count(row.seen), "number"],
        ["Hit", (row) => count(row.hits), "number"],
        ["", (row) => row.over ? badge("used up") : badge("active", "warn")],
        ["", (row) => button(`Remove ${row.id}`, "The fault is gone.", () => send("DELETE", `${BASE}/faults/${row.id}`))],
      ], all, { empty: h("p", { class: "muted" }, "None: everything works as it should.") }),
      h("p", { class: "inline" }, button("Answer nobody for 5 s", "The broker is silent.", () => post(`${BASE}/faults/stop`, { ms: 5000 })),
        all.length ? button("Remove all", "No faults any more.", () => send("DELETE", `${BASE}/faults`)) : null));
  }

  const name = h("input", { placeholder: "name", "aria-label": "Name of a snapshot", autocomplete: "off", class: "short" });
  const taking = h("form", { class: "inline", onsubmit: (event) => {
    event.preventDefault();
    act("The snapshot is taken.", () => post(`${BASE}/snapshots`, name.value ? { name: name.value } : {}));
  } }, name, h("button", {}, "Take a snapshot"));

  function drawSnapshots(names) {
    update(snapshots, h("h2", {}, "Snapshots"),
      h("p", { class: "muted" }, "A snapshot has everything that the broker has: topics, messages, groups. Clients stay connected when it is put back."), taking,
      table([
        ["Snapshot", (row) => row],
        ["", (row) => button(`Put ${row} back`, `All is as in ${row}.`, () => post(`${BASE}/snapshots/${encodeURIComponent(row)}/restore`))],
        ["", (row) => button(`Delete ${row}`, "The snapshot is gone.", () => send("DELETE", `${BASE}/snapshots/${encodeURIComponent(row)}`))],
      ], names, { empty: h("p", { class: "muted" }, "None yet.") }),
      h("details", { class: "danger" }, h("summary", {}, "Reset the broker"),
        h("p", {}, "This deletes all topics, groups and faults, and sets the clock back. ",
          button("Delete everything", "Nothing is left: the broker is as after its start.", () => post(`${BASE}/reset`), "bad"))));
  }

  function drawNodes(all) {
    if (all.length < 2) return;
    update(nodes, h("h2", {}, "Brokers"),
      table([
        ["Broker", (row) => count(row.id), "number"],
        ["State", (row) => row.running ? row.isolated ? badge("cut off", "warn") : badge("running", "good") : badge("not running", "bad")],
        ["", (row) => row.running ? [button(`Kill ${row.id}`, `Broker ${row.id} is dead.`, () => post(`${BASE}/nodes/${row.id}/kill`), "bad"), " ",
          button(`Stop ${row.id}`, `Broker ${row.id} has stopped.`, () => post(`${BASE}/nodes/${row.id}/stop`)), " ",
          row.isolated ? button(`Heal ${row.id}`, `Broker ${row.id} reaches the others again.`, () => post(`${BASE}/nodes/${row.id}/heal`))
            : button(`Cut ${row.id} off`, `Broker ${row.id} is alone.`, () => post(`${BASE}/nodes/${row.id}/isolate`))]
          : button(`Start ${row.id}`, `Broker ${row.id} runs.`, () => post(`${BASE}/nodes/${row.id}/start`))],
      ], all));
  }

  context.watch({}, () => { if (context.about) drawNodes(context.about.brokers); });
  const timer = setInterval(look, 3000);
  look();
  return () => {
    gone = true;
    clearInterval(timer);
  };
}

function words(fault) {
  const { id, seen, hits, over, ...rest } = fault;
  return Object.entries(rest.fault ?? rest).filter(([, value]) => value !== null && value !== undefined)
    .map(([key, value]) => `${key}=${typeof value === "object" ? JSON.stringify(value) : value}`).join(" ");
}
