"""Replies per second of our client, openai's and LiteLLM's at a server in another process that answers at once.

``python -m benchmarks.clients``, in an environment that also has openai and litellm.
"""

import asyncio
import multiprocessing
import socket
import time
from functools import partial

import litellm
import openai
from aiohttp import web

from quit.models.generation.base import ChatRequest, ModelOptions
from quit.models.generation.server import ServerGenerator
from quit.models.prompting import load_prompt
from quit.settings import ServerSettings

COUNT = 1000
REQUESTS = [ChatRequest(load_prompt("probe"), {"question": f"{n} " + "hint " * 800}, 32) for n in range(COUNT)]


def _serve(listening):
    async def answer(request):
        return web.json_response(reply if await request.read() else {"data": []})

    message = {"role": "assistant", "content": "Lesotho"}
    reply = {"id": "1", "object": "chat.completion", "created": 0, "model": "m", "usage": None}
    reply["choices"] = [{"index": 0, "finish_reason": "stop", "message": message}]
    app = web.Application()
    app.router.add_route("*", "/v1/{path:.*}", answer)
    web.run_app(app, sock=listening, print=None)


async def _theirs(ask, model, at_once):
    async def work():
        for r in left:
            await ask(model=model, messages=r.messages(), max_tokens=32, temperature=0, top_p=1, seed=r.sample)

    left = iter(REQUESTS)
    await asyncio.gather(*(work() for _ in range(at_once)))


async def _ours(url, at_once):
    settings = ServerSettings(name="s", base_urls=(url,), concurrency=at_once)
    await asyncio.to_thread(ServerGenerator("r", ModelOptions("m"), settings).generate, REQUESTS, lambda *_: None)


async def _openai(url, at_once):
    async with openai.AsyncOpenAI(base_url=url, api_key="k") as client:
        await _theirs(client.chat.completions.create, "m", at_once)


async def _litellm(url, at_once):
    await _theirs(partial(litellm.acompletion, api_base=url, api_key="k"), "openai/m", at_once)


if __name__ == "__main__":
    with socket.create_server(("127.0.0.1", 0), backlog=256) as listening, asyncio.Runner() as loop:
        url = f"http://127.0.0.1:{listening.getsockname()[1]}/v1"
        multiprocessing.get_context("fork").Process(target=_serve, args=(listening,), daemon=True).start()
        for at_once in (1, 16, 64) * 2:
            for run in (_ours, _openai, _litellm):
                start, processor = time.perf_counter(), time.process_time()
                loop.run(run(url, at_once))
                seconds, processor = time.perf_counter() - start, time.process_time() - processor
                print(
                    f"{at_once:3} {run.__name__[1:]:8} {COUNT / seconds:4.0f}/s, {processor / COUNT * 1e3:.2f} ms each"
                )
