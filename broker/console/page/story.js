// A rebalance as a picture against time: a line for each member, from its request to the answer, and the phases behind them.

import { h, svg } from "./dom.js";
import { clockTime, time } from "./words.js";

const ROW = 26;
const NAMES = 150;
const WIDTH = 720;

export function rebalanceStory(told) {
  return h("article", { class: "story" },
    h("h3", {}, told.title, " ", h("span", { class: "muted", title: time(told.began_ms) }, clockTime(told.began_ms))),
    h("p", {}, told.words.join(" ")),
    told.members.length ? picture(told) : null);
}

function picture(told) {
  const members = told.members.slice(0, 20);
  const ends = [told.began_ms, told.joined_ms, told.ended_ms, ...told.notes.map((note) => note.at_ms)].filter((each) => each !== null);
  const first = Math.min(...ends);
  const last = Math.max(...ends, first + 1);
  const left = NAMES;
  const x = (at) => left + 10 + ((at - first) / (last - first)) * (WIDTH - left - 30);
  const height = members.length * ROW + 40;
  const joined = told.joined_ms ?? last;
  const ended = told.ended_ms ?? last;
  const parts = [
    phase("joining", x(told.began_ms), x(joined), height, told.phases[0]),
    told.joined_ms === null ? null : phase("assigning", x(joined), x(ended), height, told.phases[1]),
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
    svg("svg", { viewBox: `0 0 ${WIDTH} ${height}`, class: "timeline", role: "img", "aria-label": told.words.join(" ") }, parts));
}

function wait(from, to, y, kind) {
  return svg("line", { x1: from, x2: to, y1: y, y2: y, class: `wait ${kind}` });
}

function phase(kind, from, to, height, text) {
  return svg("g", { class: `phase ${kind}` },
    svg("rect", { x: from, y: 0, width: Math.max(to - from, 2), height }),
    to - from > 90 ? svg("text", { x: from + 6, y: 15 }, text) : null);
}

function short(name) {
  return name.length > 20 ? `${name.slice(0, 18)}…` : name;
}
