"""Settings of models: which they are, and how they are reached."""

from __future__ import annotations

import os
import re
from typing import Annotated, Any, Literal, Self

from pydantic import ConfigDict, Field, PrivateAttr, field_validator

from quit.common.endpoints import UNTRUSTED, is_address, secret_of, secrets_in
from quit.errors import SettingsError
from quit.settings.section import File, Prompt, Section, Variable
from quit.text.secrets import register_secret

_KEY = re.compile(r"api.?key|secret|password|authorization", re.IGNORECASE)
LANGUAGE_MODELS = ("server", "vllm", "transformers")
"""Kinds of readers and judges that are language models."""


Omittable = Literal["temperature", "top_p", "seed", "stop", "frequency_penalty", "presence_penalty"]


class LanguageModel(Section):
    """How a language model or a class of your own is reached, and what decides its replies."""

    model_config = ConfigDict(validate_by_name=True, validate_by_alias=True, serialize_by_alias=True)

    _recorded_identity: str | None = PrivateAttr(None)
    model: str | None = None
    """A hub name, a folder (on a server: `./NAME`), a server's name for it."""
    revision: str = ""
    """Revision, quantisation or other mark of its version."""
    server: str | None = None
    """Name of the entry of `servers` that serves it (kind `server`)."""
    template_options: dict[str, Any] = Field(default_factory=dict)
    """Options of its chat template, such as enable_thinking = false for Qwen 3."""
    extra: dict[str, Any] = Field(default_factory=dict)
    """More fields of the request (kind `server`), engine arguments (kind `vllm`) or arguments of the constructor (kind
    `python`), as they are."""
    token_field: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    """The request's field for its most tokens (kind `server`): OpenAI's reasoning models know `max_completion_tokens`
    only."""
    omit: tuple[Omittable, ...] = ()
    """Fields that the request leaves out (kind `server`), for a model that refuses them."""
    effort: str | None = None
    """How much it thinks, such as low: `reasoning_effort` of the request or of its chat template."""
    thinking: Literal["refuse", "drop"] = "refuse"
    """Thoughts in a reply: `refuse` stops with an error, `drop` takes what comes after them as the answer."""
    thinking_tokens: int = Field(0, ge=0)
    """Room for thoughts (`thinking` = `drop`), in tokens, beside that of the answer, `max_new_tokens`."""
    class_: str | None = Field(None, alias="class")
    """The class (kind `python`): package.module:Name."""
    device: str = "cpu"
    """Where kind `transformers` runs: cpu, cuda, cuda:1."""
    price_prompt: float = Field(0.0, ge=0)
    """Price of a million prompt tokens, for `quit plan`."""
    price_cached: float | None = Field(None, ge=0)
    """Price of a million prompt tokens served from a prefix cache; `price_prompt` if not given."""
    price_completion: float = Field(0.0, ge=0)
    """Price of a million completion tokens."""

    @field_validator("extra")
    @classmethod
    def _no_key(cls, value: dict[str, Any]) -> dict[str, Any]:
        if keys := [name for name in value if _KEY.search(name)]:
            raise ValueError(
                f"it has {keys[0]!r}, and settings are published: name the variable of the key (api_key_env)"
            )
        return value

    @property
    def recorded_identity(self) -> str | None:
        """What tables say of a class (kind `python`) that is not imported, if it is only looked at."""
        return self._recorded_identity

    def with_recorded_identity(self, identity: str) -> Self:
        """Return these settings of a class that is not imported."""
        copy = self.model_copy()
        copy._recorded_identity = identity
        return copy

    @property
    def missing_prices(self) -> str:
        """The keys of the prices that are not given, for messages; empty where all are."""
        return " and ".join(key for key in ("price_prompt", "price_completion") if key not in self.model_fields_set)

    def cost(self, prompt: float, cached: float, completion: float) -> float | None:
        """Return the price of so many tokens, ``cached`` among those of prompts; None where no price is given."""
        if not {"price_prompt", "price_completion"} & self.model_fields_set:
            return None
        again = self.price_prompt if self.price_cached is None else self.price_cached
        return ((prompt - cached) * self.price_prompt + cached * again + completion * self.price_completion) / 1e6


class JudgeSettings(LanguageModel):
    """GPT-Eval (figure 3), or the judge used in its place."""

    name: str = "equivalence"
    """Name under which verdicts are stored."""
    kind: Literal["equivalence", "server", "vllm", "transformers", "python"] = "equivalence"
    """`equivalence`: the equivalence model decides; else a language model or a class of your own (`python`) does, and
    the equivalence model's verdicts are recorded beside it."""
    threshold: float = Field(0.5, ge=0, le=1)
    """Equivalence probability from which an answer counts as correct."""
    prompt: Prompt = "judge"
    """Its prompt: `judge` is the paper's figure 3, or a .txt file."""
    max_new_tokens: int = Field(8, ge=1)
    """Longest reply, in tokens."""
    attempts: int = Field(3, ge=1)
    """How often it is asked until its reply can be read as Yes or No."""
    constrained: bool = False
    """Let the server allow nothing but Yes and No: by `structured_outputs` where its flavour is vllm, else by a JSON
    schema (`response_format`)."""


class ModelSettings(Section):
    """Which model is used for what."""

    equivalence: Literal["embedded", "bem"] = "embedded"
    """Answer equivalence of leakage, judge and probe: `embedded` ships with the program, `bem` is the paper's."""
    bem_checkpoint: Annotated[str, File(r"^\.\.?/")] = Field("kortukov/answer-equivalence-bem", min_length=1)
    """BEM: a name on the Hugging Face hub, or a local folder (`./NAME`)."""
    bem_revision: str = "main"
    """BEM: the hub's revision. A branch may move on, so `leakage.method = bem` takes a commit only (40 hexadecimal
    digits)."""


class ReaderSettings(LanguageModel):
    """One reader. `--paper-keys` writes the first three labelers and readers under the paper's six names."""

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9.-]*$")
    """Name, used as key in every table and export."""
    role: Literal["labeler", "reader"]
    """`labeler` decides labels; `reader` only evaluates."""
    kind: Literal["embedded", "server", "vllm", "transformers", "python"] = "embedded"
    """`embedded`: a closed-set guesser over MiniLM; `server`: an OpenAI-compatible server; `vllm`: vLLM in this
    process; `transformers`: in this process, CPU or GPU; `python`: a class of your own."""
    model: str | None = None
    """The model, as its kind names it; of an embedded reader, its name if not given."""
    prompt: Prompt = "reader"
    """Prompt with context: `reader` is the paper's figure 8, `reader_scripts` the same in the layout of its authors'
    scripts, or a .txt file."""
    probe_prompt: Prompt = "probe"
    """Prompt without context, for the parametric probe, or a .txt file."""
    stop: tuple[Annotated[str, Field(min_length=1)], ...] = Field((), max_length=4)
    r"""Strings before the first of which a reply ends, such as ["\n"], for a model that goes on after its answer. A
    model that may think (`thinking` = `drop`) is not sent them; its answer is cut there. Part of the reader's identity
    where there are any: all its replies are asked for again."""


class ServerSettings(Section):
    """An OpenAI-compatible server and the limits of its use. Only `concurrency` can change results: a server's greedy
    replies may depend on what shares their batch."""

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9.-]*$")
    """Name that readers and judge refer to."""
    base_urls: tuple[str, ...] = ()
    """Base URLs such as http://127.0.0.1:8000/v1, one per replica."""
    base_url_env: Variable | None = None
    """Environment variable of base URLs, separated by commas: for addresses with a password or a key, which nothing
    shows or keeps."""
    api_key_env: Variable | None = None
    """Environment variable of its API key."""
    api_key_needed: bool = True
    """Whether to stop where `api_key_env` is named and not set."""
    flavour: Literal["vllm", "openai"] = "vllm"
    """`openai` leaves out what only vLLM understands."""
    concurrency: int = Field(32, ge=1)
    """Requests in flight per replica, at most; fewer when it is overloaded."""
    requests_per_minute: float = Field(0, ge=0)
    """Budget per replica; 0 is none."""
    tokens_per_minute: float = Field(0, ge=0)
    """Budget per replica, prompt and reply; 0 is none."""
    timeout_seconds: float = Field(120, gt=0)
    """Longest wait for one reply."""
    attempts: int = Field(8, ge=1)
    """Attempts at one request per replica, for every fault except a failed connection."""
    batch: bool = False
    """Ask through its batch endpoints (`/files`, `/batches`): a build submits what is missing and ends; one that runs
    later collects the replies. For OpenAI, and servers that do the same."""
    batch_tokens: int = Field(0, ge=0)
    """With `batch`: how many tokens may wait at the server at a time, about; 0: as many as it takes. Batches are cut to
    this and sent one after the other."""
    batch_price: float = Field(0.5, ge=0)
    """With `batch`: its price, as a share of the models' prices."""
    patience_seconds: float = Field(60, ge=0)
    """How long to wait while no connection can be made, or the server still loads its model."""
    words: dict[str, Literal["stop", "length", "withheld", "again", "running", "ended"]] = Field(default_factory=dict)
    """What words of this server mean that the program does not know: reasons why a reply ended (`stop`, `length`: cut,
    `withheld`, `again`: no reply) and states of batches (`running`, `ended`)."""

    def remedy_for(self, fault: str = "") -> str:
        """Return the advice for a server that does not answer, for messages."""
        if "CERTIFICATE_VERIFY_FAILED" in fault:
            return UNTRUSTED
        vendors = self.flavour == "openai" and self.api_key_env and self.api_key_needed
        how = "quit models serve prints the command" if self.flavour == "vllm" else "Ollama: ollama serve"
        start = "See whether this machine reaches it" if vendors else f"Start it ({how})"
        where = f"set {self.base_url_env} to its address" if self.base_url_env else "correct base_urls in the profile"
        return f"{start}, or {where}."

    @property
    def key_remedy(self) -> str:
        """The advice for a server that refuses the API key, for messages."""
        return f"Set {self.api_key_env or 'api_key_env in the profile, and the variable it names'}."

    def key(self) -> str | None:
        """Return the API key, which no text shows from then on. Raises :class:`SettingsError` where it is missing, or
        cannot be sent."""
        key = secret_of(self.api_key_env) if self.api_key_env else None
        if self.api_key_env and self.api_key_needed and not key:
            raise SettingsError(
                f"Server {self.name!r}: the environment variable {self.api_key_env} is not set. Set it to the API key."
            )
        return key or None

    def urls(self) -> list[str]:
        """Return the replicas' base URLs. Raises :class:`SettingsError` where there is none."""
        urls = list(self.base_urls)
        if any(map(secrets_in, filter(is_address, urls))):
            raise SettingsError(
                f"Server {self.name!r}: an address in base_urls holds a password or a key, and settings are published "
                "with a dataset. Put the whole address into an environment variable, and name that in base_url_env."
            )
        if self.base_url_env:
            urls = [each.strip() for each in os.environ.get(self.base_url_env, "").split(",") if each.strip()] or urls
        if not urls:
            where = f"set {self.base_url_env}, or " if self.base_url_env else ""
            raise SettingsError(f"Server {self.name!r} has no address: {where}give base_urls in the profile.")
        urls = [re.sub(r"(?:/chat/completions)?/?(?=$|\?)", "", url.strip(), count=1) for url in urls]
        for url in urls:
            if not is_address(url):
                raise SettingsError(
                    f"Server {self.name!r}: {url!r} is not an address; write it as http://127.0.0.1:8000/v1."
                )
            for secret in secrets_in(url):
                register_secret(secret, self.base_url_env or "")
        return urls
