"""Text from language models: one protocol, three ways to run it, and a cache that never pays twice."""

from quit.models.generation.base import ChatRequest, Completion, Generator
from quit.models.generation.cache import GenerationCache
from quit.models.generation.cached import CachedGenerator
from quit.models.generation.meter import Meter

__all__ = ["CachedGenerator", "ChatRequest", "Completion", "GenerationCache", "Generator", "Meter"]
