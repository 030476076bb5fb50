"""A run as a picture: brokers against time, in one file that needs nothing else.

Each broker has a band for its life and its faults, and below it one lane for each of its partitions: who leads is thick
and has the colour of its epoch, the high watermark is written where it moves. The last band is the tree's. Under the
picture is the story; a click on a moment of one leads to the same moment of the other.
"""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from barnabas.simulation.run import Result
from barnabas.simulation.story import lines, summary, worth_telling
from barnabas.simulation.trace import Event, Sample

_WIDTH = 1400
_LEFT = 150
_LANE = 13
_BAND = 20
_COLOURS = ("#4472c4", "#c55a11", "#548235", "#7030a0", "#bf9000", "#c00000", "#2e75b6", "#833c0b")


def picture(result: Result) -> str:
    """The whole page."""
    drawing = _Drawing(result)
    body = "".join(drawing.parts())
    story = "".join(_story(result))
    findings = "".join(
        f"<p class=broken><b>{escape(each.promise)}</b>: {escape(each.what)}</p>" for each in result.findings
    )
    return f"""<!doctype html><html lang=en><meta charset=utf-8><title>seed {result.plan.seed}</title><style>
body {{ font: 13px/1.4 system-ui, sans-serif; margin: 1em; color: #222 }}
svg text {{ font: 10px system-ui, sans-serif }}
pre {{ font: 11px/1.35 ui-monospace, monospace; white-space: pre-wrap; margin: 0 }}
pre:target, pre.near {{ background: #fff2cc }}
.fault {{ color: #c00000 }} .role {{ color: #2e75b6 }}
.finding, .error, .traceback {{ color: #c00000; font-weight: bold }}
.registry {{ color: #777 }} .client {{ color: #548235 }} .broken {{ color: #c00000; font-size: 15px }}
#story {{ height: 45vh; overflow: auto; border-top: 1px solid #ccc; padding-top: .5em }}
#now {{ stroke: #c00000; stroke-width: 1 }}
</style><h1>Seed {result.plan.seed}</h1><p>{escape(summary(result))}</p>{findings}
<svg id=picture width={_WIDTH} height={drawing.height} viewBox="0 0 {_WIDTH} {drawing.height}">{body}
<line id=now x1=-9 x2=-9 y1=0 y2={drawing.height} /></svg>
<div id=story>{story}</div><script>
const left = {_LEFT}, width = {_WIDTH - _LEFT - 10}, end = {result.simulated_seconds};
const svg = document.getElementById("picture"), now = document.getElementById("now");
const lines = [...document.querySelectorAll("#story pre")];
function show(t) {{ const x = left + t / end * width; now.setAttribute("x1", x); now.setAttribute("x2", x); }}
svg.addEventListener("click", e => {{
  const t = (e.offsetX - left) / width * end; show(t);
  const line = lines.find(l => +l.dataset.t >= t) || lines[lines.length - 1];
  lines.forEach(l => l.classList.toggle("near", l === line));
  if (line) line.scrollIntoView({{block: "center"}});
}});
lines.forEach(l => l.addEventListener("click", () => show(+l.dataset.t)));
</script></html>"""


class _Drawing:
    def __init__(self, result: Result) -> None:
        self._result = result
        self._end = max(result.simulated_seconds, 0.001)
        self._lanes: dict[tuple[str, str], float] = {}  # the height at which a broker's partition is drawn
        self._bands: dict[str, float] = {}
        self.height = self._place()

    def _place(self) -> float:
        y = 30.0
        partitions = sorted({sample.partition for sample in self._result.trace.samples})
        for number in range(1, self._result.plan.brokers + 1):
            who = f"broker {number}"
            self._bands[who] = y
            y += _BAND
            for partition in partitions:
                if any(each.who == who and each.partition == partition for each in self._result.trace.samples):
                    self._lanes[who, partition] = y
                    y += _LANE
            y += 8
        for who in ("registry", "clients"):
            self._bands[who] = y
            y += _BAND
        return y + 20

    def _x(self, at: float) -> float:
        return _LEFT + at / self._end * (_WIDTH - _LEFT - 10)

    def parts(self) -> Iterator[str]:
        yield from self._axis()
        for who, y in self._bands.items():
            yield f'<text x=4 y={y + 12} font-weight="bold">{who}</text>'
        yield from self._lives()
        yield from self._replicas()
        yield from self._faults()
        yield from self._marks()

    def _axis(self) -> Iterator[str]:
        step = max(1, round(self._end / 20))
        for second in range(0, int(self._end) + 1, step):
            x = self._x(second)
            yield f'<line x1={x:.1f} x2={x:.1f} y1=16 y2={self.height} stroke="#eee" />'
            yield f"<text x={x:.1f} y=12>{second} s</text>"

    def _lives(self) -> Iterator[str]:
        """A grey bar while the process runs, a dark one while it serves."""
        for who in list(self._bands)[: self._result.plan.brokers]:
            began = serves = None
            y = self._bands[who] + 4
            for event in [*self._result.trace.events, Event(self._end, who, "is killed")]:
                if event.who != who or event.kind:
                    continue
                if event.what == "starts":
                    began = event.at
                elif event.what == "serves":
                    serves = event.at
                elif event.what.startswith(("is killed", "loses power", "has stopped", "ends")):
                    for start, colour in ((began, "#d9d9d9"), (serves, "#a6a6a6")):
                        if start is not None:
                            yield _bar(self._x(start), self._x(event.at), y, 10, colour, f"{who} from {start:.3f} s")
                    began = serves = None

    def _replicas(self) -> Iterator[str]:
        by_lane: dict[tuple[str, str], list[Sample]] = {}
        for sample in self._result.trace.samples:
            by_lane.setdefault((sample.who, sample.partition), []).append(sample)
        for (who, partition), samples in by_lane.items():
            y = self._lanes[who, partition]
            yield f"<text x=14 y={y + 9}>{escape(partition)}</text>"
            last_x = 0.0
            for sample, following in zip(samples, [*samples[1:], None], strict=True):
                end = following.at if following is not None else self._end
                colour = _COLOURS[sample.leader_epoch % len(_COLOURS)]
                title = (
                    f"{partition} on {who} at {sample.at:.3f} s: {'leads' if sample.leads else 'follows'} in epoch"
                    f" {sample.leader_epoch}, high watermark {sample.high_watermark}, end {sample.end_offset}"
                )
                height = 8 if sample.leads else 2
                x = self._x(sample.at)
                yield _bar(x, self._x(end), y + 5 - height / 2, height, colour, title)
                if x - last_x > 34:
                    yield f'<text x={x:.1f} y={y + 4} font-size="7" fill="#333">{sample.high_watermark}</text>'
                    last_x = x

    def _faults(self) -> Iterator[str]:
        for event in self._result.trace.events:
            if event.kind == "fault" and event.who in self._bands:
                x, y = self._x(event.at), self._bands[event.who]
                yield (
                    f'<g fill="#c00000"><circle cx={x:.1f} cy={y + 9} r=3 /><text x={x + 4:.1f} y={y + 3}>'
                    f"{escape(event.what)}</text><title>{event.at:.3f} s: {escape(event.what)}</title></g>"
                )

    def _marks(self) -> Iterator[str]:
        """Decisions in the tree, troubles of clients, and what was found."""
        for event in self._result.trace.events:
            if event.kind == "registry" and ("/state" in event.what or "/controller" in event.what):
                yield self._mark(event, "registry", "#777")
            elif event.kind == "client":
                yield self._mark(event, "clients", "#548235")
            elif event.kind == "finding":
                x = self._x(event.at)
                yield f'<line x1={x:.1f} x2={x:.1f} y1=16 y2={self.height} stroke="#c00000" stroke-dasharray="3" />'

    def _mark(self, event: Event, band: str, colour: str) -> str:
        x, y = self._x(event.at), self._bands[band] + 4
        title = escape(f"{event.at:.3f} s, {event.who}: {event.what}")
        return f'<rect x={x:.1f} y={y} width=2 height=10 fill="{colour}"><title>{title}</title></rect>'


def _bar(start: float, end: float, y: float, height: float, colour: str, title: str) -> str:
    width = max(end - start, 1.0)
    return (
        f'<rect x={start:.1f} y={y:.1f} width={width:.1f} height={height} fill="{colour}">'
        f"<title>{escape(title)}</title></rect>"
    )


def _story(result: Result) -> Iterator[str]:
    for event in result.trace.events:
        if worth_telling(event):
            text = escape("\n".join(lines(event)))
            yield f'<pre class="{event.kind}" data-t={event.at!r}>{text}</pre>'
    for line in result.beliefs:
        yield f"<pre data-t={result.simulated_seconds!r}>{escape(line)}</pre>"
