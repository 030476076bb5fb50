"""`barnabas pipeline`: run pipelines on Spark from files, and look at them."""

from __future__ import annotations

import argparse
import logging
import re
import sys
from pathlib import Path

from broker.cli.arguments import assignment
from broker.cli.ending import UsageError, complain, ends_quietly, terminated_like_interrupted

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "": 1.0}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(title="actions", dest="action", metavar="ACTION", required=True)
    run_parser = _action(actions, "run", "run a pipeline until Ctrl-C, or once, or for a time")
    run_parser.add_argument(
        "--master", metavar="URL", help="where Spark runs: local[*], spark://HOST:PORT, yarn, k8s://…"
    )
    end = run_parser.add_mutually_exclusive_group()
    end.add_argument("--once", action="store_true", help="work off what is there now, and end")
    end.add_argument("--for", dest="seconds", metavar="TIME", type=duration, help="end after a time: 60s, 5m")
    run_parser.add_argument("--plain", action="store_true", help="progress in lines, also on a terminal")
    _action(actions, "validate", "say everything that is wrong with a file; starts nothing")
    explain = _action(actions, "explain", "show the plan, the topics and how far behind the pipeline is")
    explain.add_argument("--master", metavar="URL", help="where Spark runs")
    status = _action(actions, "status", "show how far a pipeline has come; does not start Spark")
    status.add_argument("--json", action="store_true", help="print JSON instead of a table")
    init = actions.add_parser("init", help="write a commented example", description="write a commented example")
    init.add_argument("file", metavar="FILE", nargs="?", default="pipeline.yaml")
    init.add_argument("--force", action="store_true", help="write over a file that is there")


def _action(
    actions: argparse._SubParsersAction[argparse.ArgumentParser], name: str, summary: str
) -> argparse.ArgumentParser:
    parser = actions.add_parser(name, help=summary, description=summary)
    parser.add_argument("file", metavar="FILE", help="a pipeline's YAML file")
    parser.add_argument(
        "--set",
        dest="overrides",
        metavar="KEY=VALUE",
        action="append",
        type=assignment,
        default=[],
        help="a value to put into the file, such as sources.orders.topic=orders-2",
    )
    return parser


@ends_quietly
def run(options: argparse.Namespace) -> int:
    try:
        from pipeline.errors import PipelineError
        from pipeline.file import FileError, load
    except ModuleNotFoundError as error:
        raise UsageError(
            f"pipelines need {error.name}, which is not installed: pip install 'barnabas[pipeline]'"
        ) from None
    if options.action == "init":
        return _init(options)
    try:
        pipeline = load(options.file, options.overrides)
        if options.action == "validate":
            print(f"{options.file}: nothing is wrong")
            return 0
        if options.action == "status":
            from pipeline.status import show_status

            return show_status(pipeline, as_json=options.json)
        if options.action == "explain":
            from pipeline.explain import show_plan

            return show_plan(pipeline, options.master)
        from pipeline.running import run as run_pipeline

        # Py4J logs a trace for every call that Java does not answer; what that means is told in a sentence.
        logging.basicConfig(handlers=[logging.NullHandler()])
        with terminated_like_interrupted():
            run_pipeline(
                pipeline,
                master=options.master,
                once=options.once,
                seconds=options.seconds,
                plain=options.plain or not sys.stdout.isatty(),
            )
        return 0
    except FileError as error:
        print(error, file=sys.stderr)
        complain(
            f"{len(error.problems)} {'thing is' if len(error.problems) == 1 else 'things are'} wrong with the file"
        )
        return 2
    except PipelineError as error:
        complain(error)
        return 1


def _init(options: argparse.Namespace) -> int:
    from pipeline.file.example import EXAMPLE

    path = Path(options.file)
    try:
        with path.open("w" if options.force else "x", encoding="utf-8") as file:
            file.write(EXAMPLE)
    except FileExistsError:
        raise UsageError(f"{path} is there already; --force writes over it") from None
    print(f"wrote {path}; next: barnabas pipeline validate {path}")
    return 0


def duration(text: str) -> float:
    match = re.fullmatch(r"(\d+(?:\.\d+)?)(ms|s|m|h|)", text)
    seconds = float(match[1]) * _UNITS[match[2]] if match else 0.0
    if seconds <= 0:
        raise argparse.ArgumentTypeError(f"{text!r} is no time such as 60s or 5m")
    return seconds
