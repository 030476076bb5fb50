"""`barnabas pipeline`: run Spark pipelines from YAML files, and inspect them."""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from barnabas.command.arguments import add_client_config, brokers_and_timeout
from barnabas.command.ending import UsageError, complain, terminated_like_interrupted
from barnabas.command.parser import add_actions, add_bootstrap
from barnabas.command.values import assignment, duration

_BOOTSTRAP: Final = "bootstrap.servers"
_OF_SECURITY: Final = ("security.", "sasl.", "ssl.", "client.")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_bootstrap(parser, default="the file's")
    actions = add_actions(parser)
    run_parser = _action(actions, "run", "run a pipeline until Ctrl-C, or once, or for some time")
    run_parser.add_argument(
        "--master", metavar="URL", help="where Spark runs: local[*], spark://HOST:PORT, yarn, k8s://…"
    )
    end = run_parser.add_mutually_exclusive_group()
    end.add_argument("--once", action="store_true", help="process what is there now, then stop")
    end.add_argument("--for", dest="seconds", metavar="DURATION", type=duration, help="stop after this time: 60s, 5m")
    run_parser.add_argument("--plain", action="store_true", help="show progress line by line, also on a terminal")
    _action(actions, "validate", "report everything that is wrong with a file, without starting anything")
    explain = _action(actions, "explain", "show the plan, the topics and the lag")
    explain.add_argument("--master", metavar="URL", help="where Spark runs")
    status = _action(actions, "status", "show how far a pipeline has read, without starting Spark")
    status.add_argument("--json", action="store_true", help="print JSON instead of a table")
    summary = "write a commented example file"
    init = actions.add_parser("init", help=summary, description=summary)
    init.set_defaults(run=run, action="init")
    init.add_argument("file", metavar="FILE", nargs="?", default="pipeline.yaml")
    init.add_argument("--force", action="store_true", help="overwrite an existing file")


def _action(
    actions: argparse._SubParsersAction[argparse.ArgumentParser], name: str, summary: str
) -> argparse.ArgumentParser:
    parser = actions.add_parser(name, help=summary, description=summary)
    parser.set_defaults(run=run, action=name, connects=True)
    add_bootstrap(parser, default="the file's")
    add_client_config(parser)
    parser.add_argument("file", metavar="FILE", help="a pipeline's YAML file")
    parser.add_argument(
        "--config",
        dest="overrides",
        metavar="KEY=VALUE",
        action="append",
        type=assignment,
        default=[],
        help="override a value of the file, such as sources.orders.topic=orders-2; may be repeated",
    )
    return parser


def run(options: argparse.Namespace) -> int:
    with _installed():
        from barnabas.pipeline.errors import PipelineError
        from barnabas.pipeline.file import FileError, load
    if options.action == "init":
        return _init(options)
    try:
        security = _client_settings(options)
        pipeline = load(options.file, [*_bootstrap(options, security), *options.overrides], security)
        if options.action == "validate":
            print(f"{options.file}: nothing is wrong")
            return 0
        if options.action == "status":
            with _installed():
                from barnabas.pipeline.status import show_status
            return show_status(pipeline, as_json=options.json)
        if options.action == "explain":
            with _installed():
                from barnabas.pipeline.explain import show_plan
            return show_plan(pipeline, options.master)
        print(f"pipeline {pipeline.name}: starting Spark: loading its libraries…", flush=True)
        with _installed():
            from barnabas.pipeline.running import run as run_pipeline
        # Py4J logs a trace for every call that Java does not answer. We say what that means in a sentence.
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


@contextmanager
def _installed() -> Iterator[None]:
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        raise UsageError(
            f"pipelines need {package}, which is not installed: pip install '.[pipeline]' in a clone of Barnabas"
        ) from None


def _client_settings(options: argparse.Namespace) -> dict[str, str]:
    """What --client-config says about security and about where the brokers are."""
    path = getattr(options, "client_config", None)
    if path is None:
        return {}
    from barnabas.command.client_config import read_client_settings

    found = read_client_settings(path).items()
    return {name: value for name, value in found if name == _BOOTSTRAP or name.startswith(_OF_SECURITY)}


def _bootstrap(options: argparse.Namespace, security: dict[str, str]) -> list[tuple[str, str]]:
    """What the command line says about the broker. The file wins over the environment."""
    in_client_config = security.pop(_BOOTSTRAP, None)
    if not hasattr(options, "bootstrap") and not hasattr(options, "profile"):
        return [] if in_client_config is None else [("bootstrap", in_client_config)]
    addresses, _ = brokers_and_timeout(options)
    return [("bootstrap", ",".join(map(str, addresses)))]


def _init(options: argparse.Namespace) -> int:
    from barnabas.pipeline.file.example import EXAMPLE

    path = Path(options.file)
    try:
        with path.open("w" if options.force else "x", encoding="utf-8") as file:
            file.write(EXAMPLE)
    except FileExistsError:
        raise UsageError(f"{path} already exists; --force overwrites it") from None
    print(f"wrote {path}; next: barnabas pipeline validate {path}")
    return 0
