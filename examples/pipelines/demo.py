"""`make demo`: a broker, a generator of text, the word count of word_count.yaml, and a picture of what came out.

It stops everything that it starts and keeps its data in a temporary folder; only the picture stays.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

import matplotlib
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from rich.console import Console

from barnabas.pipeline.errors import PipelineError
from barnabas.pipeline.file import load
from barnabas.pipeline.running import run

HERE = Path(__file__).parent
# Each wave has its favourites, so that there is something to see.
WAVES = (
    "castle village snow road inn",
    "messenger letter barnabas castle official",
    "telephone bureau official file klamm",
    "village teacher inn bridge lantern",
)


def main() -> int:
    parser = argparse.ArgumentParser(description="A pipeline from end to end.")
    parser.add_argument("--seconds", type=float, default=40, help="how long the pipeline runs (default: %(default)g)")
    parser.add_argument("--rate", type=int, default=2000, help="lines per second (default: %(default)d)")
    parser.add_argument("--output", type=Path, default=Path("demo.png"), help="the picture (default: %(default)s)")
    options = parser.parse_args()
    console = Console()
    with tempfile.TemporaryDirectory(prefix="barnabas-demo-") as folder, broker(Path(folder, "data")) as bootstrap:
        console.print(
            f"A broker on {bootstrap} gets {options.rate} lines of text per second. A pipeline on Spark counts their "
            f"words in windows of time for {options.seconds:g} s; then a picture of the counts is drawn.",
            highlight=False,
        )
        create(bootstrap, "lines", 2)
        pipeline = load(
            HERE / "word_count.yaml", [("bootstrap", bootstrap), ("checkpoint", str(Path(folder, "checkpoint")))]
        )
        done = threading.Event()
        generator = threading.Thread(target=generate, args=(bootstrap, options.rate, done), daemon=True)
        generator.start()
        try:
            run(pipeline, seconds=options.seconds, plain=not console.is_terminal, console=console)
        except PipelineError as error:
            console.print(f"the demo failed: {error}", style="red")
            return 1
        finally:
            done.set()
            generator.join()
        counts = read_counts(bootstrap, "word-counts")
    if not counts:
        console.print(
            f"Spark has counted nothing within {options.seconds:g} s: this machine seems to be busy. Try: "
            f"{sys.executable} {__file__} --seconds {3 * options.seconds:g}",
            style="red",
            highlight=False,
        )
        return 1
    draw(counts, options.output)
    words = sum(sum(each.values()) for each in counts.values())
    console.print(f"{words:,} words in {len(counts)} windows; the picture is {options.output.resolve()}")
    return 0


@contextmanager
def broker(data: Path) -> Iterator[str]:
    """Start a broker on a free port."""
    process = subprocess.Popen(
        [sys.executable, "-m", "barnabas", "serve", "--listen", "127.0.0.1:0", "--data", str(data)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdout is not None
    try:
        line = process.stdout.readline()
        if not line.startswith("barnabas ready on "):
            raise SystemExit("the broker did not start; try: make run")
        yield line.split()[-1]
    finally:
        process.terminate()
        process.wait(30)
        process.stdout.close()


def create(bootstrap: str, topic: str, partitions: int) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for created in admin.create_topics([NewTopic(topic, partitions, 1)]).values():
        created.result(30)


def generate(bootstrap: str, rate: int, done: threading.Event) -> None:
    """Lines of words, whose favourites change every ten seconds."""
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 20})
    chance = random.Random(1926)
    everything = " ".join(WAVES).split()
    begun = time.monotonic()
    while not done.wait(0.1):
        wave = WAVES[int((time.monotonic() - begun) / 10) % len(WAVES)].split()
        for _ in range(rate // 10):
            words = chance.choices(wave, k=5) + chance.choices(everything, k=2)
            producer.produce("lines", " ".join(words))
        producer.poll(0)
    producer.flush(30)


def read_counts(bootstrap: str, topic: str) -> dict[str, Counter[str]]:
    """The last count of every word in every window: a window is written again whenever it changes."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "demo",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
        }
    )
    partitions = consumer.list_topics(topic, timeout=30).topics[topic].partitions
    consumer.assign([TopicPartition(topic, number, 0) for number in partitions])
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    left = set(partitions)
    while left:
        message = consumer.poll(30)
        if message is None:
            raise SystemExit(f"no response from the broker while reading {topic}")
        if message.error():
            left.discard(message.partition())
            continue
        row = json.loads(message.value() or b"")
        counts[row["window_start"]][row["word"]] = row["count"]
    consumer.close()
    return dict(sorted(counts.items()))


def draw(counts: dict[str, Counter[str]], output: Path) -> None:
    matplotlib.use("agg")
    from matplotlib import pyplot

    total: Counter[str] = sum(counts.values(), Counter())
    times = [datetime.fromisoformat(each) for each in counts]
    figure, axes = pyplot.subplots(figsize=(10, 5.5), layout="constrained")
    for word, _ in total.most_common(10):
        axes.plot(times, [each[word] for each in counts.values()], marker="o", label=word)
    axes.set_title("Words in windows of ten seconds, counted by Spark, exactly once")
    axes.set_ylabel("count")
    axes.grid(alpha=0.3)
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5), frameon=False)
    figure.autofmt_xdate()
    figure.savefig(output, dpi=120)


if __name__ == "__main__":
    raise SystemExit(main())
