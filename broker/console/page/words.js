// Numbers, sizes and times as people read them.

const NUMBER = new Intl.NumberFormat("en");

export function count(number) {
  return number === null || number === undefined ? "–" : NUMBER.format(number);
}

export function rate(number) {
  if (number === undefined || number === null) return "–";
  if (number === 0) return "0";
  if (number < 10) return number.toFixed(1);
  return NUMBER.format(Math.round(number));
}

export function bytes(number) {
  if (number === undefined || number === null) return "–";
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  while (number >= 1024 && unit < units.length - 1) {
    number /= 1024;
    unit += 1;
  }
  return `${unit === 0 ? Math.round(number) : number.toFixed(number < 10 ? 1 : 0)} ${units[unit]}`;
}

export function time(ms) {
  if (ms === undefined || ms === null || ms < 0) return "no time";
  const date = new Date(ms);
  if (Number.isNaN(date.getTime())) return String(ms);
  const text = (number, digits = 2) => String(number).padStart(digits, "0");
  return `${date.getFullYear()}-${text(date.getMonth() + 1)}-${text(date.getDate())} ` +
    `${text(date.getHours())}:${text(date.getMinutes())}:${text(date.getSeconds())}.${text(date.getMilliseconds(), 3)}`;
}

// A time as a field for times takes it.
export function forInput(ms) {
  return time(ms).slice(0, 19).replace(" ", "T");
}

export function clockTime(ms) {
  const [, clock] = dayAndClock(ms);
  return clock;
}

// The time of today; of another day its date, too.
export function moment(ms) {
  const [day, clock] = dayAndClock(ms);
  return day === null || day === dayAndClock(Date.now())[0] ? clock : `${day} ${clock.slice(0, 5)}`;
}

// What is no time on a calendar has no day.
function dayAndClock(ms) {
  const text = time(ms);
  return /^\d+-/.test(text) ? text.split(" ") : [null, text];
}

export function span(ms) {
  const seconds = Math.max(0, Math.round(ms / 1000));
  const [size, unit, part] = [[86400, "d", "h"], [3600, "h", "min"], [60, "min", "s"]].find(([each]) => seconds >= each) ?? [1, "s"];
  const rest = Math.floor((seconds % size) / { h: 3600, min: 60, s: 1 }[part]);
  return `${count(Math.floor(seconds / size))} ${unit}${rest ? ` ${rest} ${part}` : ""}`;
}

// What a setting's value means, where that is not obvious: 604800000 ms are 7 d.
export function settingInWords(name, value) {
  if (!/^-?\d+$/.test(value ?? "")) return "";
  if (value === "9223372036854775807" || (value === "-1" && name.includes("retention"))) return "no limit";
  const number = Number(value);
  if (name.endsWith(".ms") && number >= 1000) return span(number);
  return name.endsWith(".bytes") && number >= 1024 ? bytes(number) : "";
}

export function milliseconds(ms) {
  return ms < 1000 ? `${ms} ms` : ms < 60000 ? `${ms / 1000} s` : span(ms);
}

export function plural(number, one, many = `${one}s`) {
  return `${count(number)} ${number === 1 ? one : many}`;
}

// Numbers as people write them: "0-2, 5".
export function ranges(numbers) {
  const runs = [];
  for (const number of [...numbers].sort((one, other) => one - other)) {
    if (runs.length && number === runs.at(-1).at(-1) + 1) runs.at(-1)[1] = number;
    else runs.push([number]);
  }
  return runs.map((run) => run.join("-")).join(", ");
}

// The address of a view; whatever a name contains, it stays one part.
export function link(...parts) {
  return `#/${parts.map(encodeURIComponent).join("/")}`;
}

// "1", "1 and 2", "1, 2 and 3".
export function listed(parts) {
  return parts.length < 2 ? parts.join("") : `${parts.slice(0, -1).join(", ")} and ${parts.at(-1)}`;
}

// Which partitions this console cannot read, and who could.
export function elsewhereWords(partitions = []) {
  if (!partitions.length) return "";
  const one = partitions.length === 1;
  const leaders = [...new Set(partitions.map((each) => each.leader))].filter((each) => each >= 0);
  const named = partitions.length > 10 ? `${count(partitions.length)} partitions`
    : `${one ? "Partition" : "Partitions"} ${listed(partitions.map((each) => each.partition))}`;
  const who = leaders.length ? `the console of broker ${listed(leaders)} shows ${one ? "its" : "their"} messages` : `nobody leads ${one ? "it" : "them"} now`;
  return `${named} ${one ? "has" : "have"} no copy here; ${who}.`;
}
