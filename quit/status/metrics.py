"""Metrics for Prometheus, read from workspaces at every scrape: a killed run leaves them right, and no run has to be
asked.

Names begin with ``quit_`` and carry ``workspace`` (the folder's path). Requests, tokens and cache hits are counted when
a stage ends; what happens inside a language model's server is for its own metrics.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from prometheus_client import CollectorRegistry, generate_latest, start_http_server
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from quit.common.endpoints import endpoints
from quit.common.files import is_url
from quit.engine.workspace import Workspace
from quit.errors import QuitError, ServerError
from quit.status.history import runs_of
from quit.status.stages import lock_holder, readable_settings, status
from quit.status.summary import funnel
from quit.status.usage import entries

_GAUGES = {
    "quit_workspace_up": ("Whether the workspace can be read.", ()),
    "quit_workspace_locked": ("Whether a run holds the workspace.", ()),
    "quit_stage_shards": ("Shards of a stage run, 0 where not known yet.", ("stage",)),
    "quit_stage_shards_done": ("Shards that are done.", ("stage",)),
    "quit_stage_complete": ("Whether the stage run is complete for the last build.", ("stage",)),
    "quit_table_rows": ("Rows of the current tables.", ("stage", "table")),
    "quit_questions": ("Questions from sources to splits.", ("step",)),
    "quit_rejects": ("What was left out, and why.", ("stage", "reason")),
    "quit_run_last_finished_timestamp_seconds": ("When a flow last ended so.", ("flow", "outcome")),
    "quit_run_last_duration_seconds": ("How long that took.", ("flow", "outcome")),
    "quit_build_last_success_timestamp_seconds": ("When a build last ended well, new or not.", ()),
    "quit_scrape_seconds": ("How long reading this workspace took.", ()),
}
_COUNTERS = {
    "quit_runs": ("Ended runs of flows.", ("flow", "outcome")),
    "quit_model_requests": ("Replies that were asked for.", ("stage", "model", "endpoint")),
    "quit_model_cached_replies": ("Replies from the generation cache.", ("stage", "model", "endpoint")),
    "quit_model_retries": ("Attempts that failed and were repeated.", ("stage", "model", "endpoint")),
    "quit_model_empty_replies": ("Empty replies.", ("stage", "model", "endpoint")),
    "quit_model_tokens": ("Tokens: prompt, prompt_cached (of these, from the server's cache), completion.",
                          ("stage", "model", "endpoint", "kind")),
    "quit_model_busy_seconds": ("Time in which something was in flight.", ("stage", "model", "endpoint")),
}  # fmt: skip
_USAGE = {
    "requests": ("quit_model_requests", ()),
    "cached": ("quit_model_cached_replies", ()),
    "retries": ("quit_model_retries", ()),
    "empty": ("quit_model_empty_replies", ()),
    "prompt_tokens": ("quit_model_tokens", ("prompt",)),
    "cached_tokens": ("quit_model_tokens", ("prompt_cached",)),
    "completion_tokens": ("quit_model_tokens", ("completion",)),
    "seconds": ("quit_model_busy_seconds", ()),
}


class Workspaces(Collector):
    """Collects the metrics of some workspaces; one that is not there yet has ``quit_workspace_up`` 0 and no more."""

    def __init__(self, places: Sequence[str | Path]) -> None:
        self._places = [str(place) if is_url(place) else str(Path(place).resolve()) for place in places]

    def describe(self) -> list[Metric]:
        """Return nothing: registering must not read a workspace."""
        return []

    def collect(self) -> Iterator[Metric]:
        """Read the workspaces."""
        families: dict[str, GaugeMetricFamily | CounterMetricFamily] = {
            name: GaugeMetricFamily(name, text, labels=("workspace", *labels))
            for name, (text, labels) in _GAUGES.items()
        }
        for name, (text, labels) in _COUNTERS.items():
            families[name] = CounterMetricFamily(name, text, labels=("workspace", *labels))
        for address in self._places:
            started = time.monotonic()
            samples: Counter[tuple[str, tuple[str, ...]]] = Counter()
            try:
                _read(address, samples)
                samples["quit_workspace_up", ()] = 1
            except (QuitError, OSError):  # not built yet, or half way through a move: the next scrape will tell
                samples["quit_workspace_up", ()] = 0
            samples["quit_scrape_seconds", ()] = time.monotonic() - started  # type: ignore[assignment]
            for (name, labels), value in samples.items():
                families[name].add_metric((address, *labels), value)
        yield from families.values()


def _read(place: str, samples: Counter[tuple[str, tuple[str, ...]]]) -> None:
    workspace = Workspace.open(place)
    for run in runs_of(workspace):
        key = (run["flow"], run["outcome"])
        samples["quit_runs", key] += 1
        samples["quit_run_last_finished_timestamp_seconds", key] = run["finished"]
        samples["quit_run_last_duration_seconds", key] = run["finished"] - run["started"]
        if run["flow"] == "build" and run["outcome"] in ("done", "nothing new"):
            samples["quit_build_last_success_timestamp_seconds", ()] = run["finished"]
    samples["quit_workspace_locked", ()] = int(lock_holder(workspace) is not None)
    for stage in status(workspace):
        samples["quit_stage_shards", (stage.run,)] = stage.shards
        samples["quit_stage_shards_done", (stage.run,)] = stage.shards_done
        samples["quit_stage_complete", (stage.run,)] = int(stage.state == "complete")
        for table, rows in stage.rows.items():
            samples["quit_table_rows", (stage.run, table)] = rows
        for reason, count in stage.rejects.items():
            samples["quit_rejects", (stage.run, reason)] = count
    for step, count in funnel(workspace):
        samples["quit_questions", (step,)] = count
    settings = readable_settings(workspace)
    where = endpoints(settings) if settings else {}
    for entry in entries(workspace.path):
        labels = (entry["run"], entry["model"], where.get(entry["model"], "unknown"))
        for name, (metric, more) in _USAGE.items():
            samples[metric, (*labels, *more)] += entry.get(name, 0)


def registry(places: Sequence[str | Path]) -> CollectorRegistry:
    """Return a registry of these workspaces' metrics."""
    collectors = CollectorRegistry(auto_describe=False)
    collectors.register(Workspaces(places))
    return collectors


def as_text(places: Sequence[str | Path]) -> str:
    """Return the metrics in Prometheus' text format, as node_exporter's textfile collector takes them."""
    return generate_latest(registry(places)).decode()


def listen(places: Sequence[str | Path], port: int, host: str) -> int:
    """Serve the metrics in a thread and return the port (``port`` 0 takes a free one). Raises ``ServerError`` where it
    is taken."""
    try:
        server, _ = start_http_server(port, host, registry(places))
    except OSError as error:
        raise ServerError(f"Cannot serve metrics on {host}:{port}: {error}. Choose another --metrics-port.") from error
    return server.server_port
