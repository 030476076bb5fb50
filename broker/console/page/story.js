// A rebalance as a picture against time: a line for each member, from its request to the answer, and the phases behind them.

import { h, svg } from "./dom.js";
import { clockTime, milliseconds, moment, plural, time } from "./words.js";

const ROW = 26;
const NAMES = 150;
const WIDTH = 720;
export const AXIS = 20; // the height of its figures
const MOST = 20;

export function rebalanceStory(told) {
  return h("article", { class: "story", key: `${told.title} ${told.began_ms}` },
    h("h3", {}, told.title, " ", h("span", { class: "muted", title: time(told.began_ms) }, moment(told.began_ms))),
    h("p", {}, told.words.join(" ")),
    told.members.length ? [picture(told), legend(told)] : null);
}

function picture(told) {
  const members = told.members.slice(0, MOST);
  const ends = [told.began_ms, told.joined_ms, told.ended_ms, ...told.notes.map((note) => note.at_ms)].filter((each) => each !== null);
  const first = Math.min(...ends);
  const last = Math.max(...ends, first + 1);
  const left = NAMES;
  const x = (at) => left + 10 + ((at - first) / (last - first)) * (WIDTH - left - 30);
  const bottom = members.length * ROW + 34;
  const joined = told.joined_ms ?? last;
  const ended = told.ended_ms ?? last;
  const parts = [
    phase("joining", x(told.began_ms), x(joined), bottom, told.phases[0]),
    told.joined_ms === null ? null : phase("assigning", x(joined), x(ended), bottom, told.phases[1]),
  ];
  members.forEach((member, index) => {
    const y = 30 + index * ROW + ROW / 2;
    const notes = told.notes.filter((note) => note.member_id === member.member_id);
    const [join, revoke, sync, gone] = ["join", "revoke", "sync", "gone"].map((kind) => notes.find((note) => note.kind === kind));
    parts.push(svg("text", { x: left, y: y + 4, class: "name", "text-anchor": "end" }, short(member.name)));
    parts.push(svg("line", { x1: left + 10, x2: WIDTH - 20, y1: y, y2: y, class: "base" }));
    if (revoke) parts.push(wait(x(revoke.at_ms), x((join ?? sync)?.at_ms ?? ended), y, "third"));
    if (join) parts.push(wait(x(join.at_ms), x(Math.max(revoke ? sync?.at_ms ?? ended : joined, join.at_ms)), y, ""));
    if (sync) parts.push(wait(x(sync.at_ms), x(Math.max(ended, sync.at_ms)), y, "second"));
    for (const note of notes) {
      parts.push(svg("circle", { cx: x(note.at_ms), cy: y, r: 5, class: note.kind },
        svg("title", {}, `${member.name} ${note.what}, ${clockTime(note.at_ms)}`)));
    }
  });
  return h("div", { class: "scroll plain" },
    svg("svg", { viewBox: `0 0 ${WIDTH} ${bottom + AXIS}`, class: "timeline", role: "img", "aria-label": told.words.join(" ") },
      parts, axis(last - first, (after) => x(first + after), bottom)));
}

// How much time has passed since the beginning, at a few round numbers.
export function axis(length, x, top) {
  const step = [1, 10, 100, 1e3, 1e4, 1e5, 1e6, 1e7].flatMap((each) => [each, 2 * each, 5 * each]).find((each) => length / each <= 6) ?? length;
  const ticks = [];
  for (let after = 0; after <= length; after += step) ticks.push(after);
  return svg("g", { class: "axis" }, ticks.map((after) => [
    svg("line", { x1: x(after), x2: x(after), y1: top, y2: top + 4 }),
    svg("text", { x: x(after), y: top + 16, "text-anchor": "middle" }, after ? milliseconds(after) : "0"),
  ]));
}

// What the colours of the dots mean, as far as they are in the picture.
function legend(told) {
  const kinds = new Map();
  for (const note of told.notes) kinds.set(note.kind, (kinds.get(note.kind) ?? new Set()).add(note.what));
  return h("p", { class: "legend muted" },
    [...kinds].map(([kind, what]) => h("span", {}, h("span", { class: `dot ${kind}` }), [...what].join(", "))),
    h("span", {}, "A thick line waits for what comes next."),
    told.members.length > MOST ? h("span", {}, `${plural(told.members.length - MOST, "member")} more ${told.members.length - MOST === 1 ? "is" : "are"} not drawn.`) : null);
}

function wait(from, to, y, kind) {
  return svg("line", { x1: from, x2: to, y1: y, y2: y, class: `wait ${kind}` });
}

function phase(kind, from, to, height, text) {
  return svg("g", { class: `phase ${kind}` },
    svg("rect", { x: from, y: 0, width: Math.max(to - from, 2), height }),
    to - from > 6 * text.length ? svg("text", { x: from + 6, y: 15 }, text) : null);
}

function short(name) {
  return name.length > 20 ? `${name.slice(0, 18)}…` : name;
}
