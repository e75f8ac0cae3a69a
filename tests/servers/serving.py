"""A small HTTP server in this process, for what a program sends out and how it takes the answers."""

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

Answer = Callable[[str, str, Mapping[str, str], bytes], tuple[int, bytes, Mapping[str, str]]]


class ManyAtOnce(ThreadingHTTPServer):
    """Takes many connections at once: of more than wait, some would try again for minutes."""

    request_queue_size = 128


@contextmanager
def serving(answer: Answer) -> Iterator[str]:
    """Serve on a free port of this machine; yields the address. ``answer``: (method, path, headers, body) -> (status,
    body, headers)."""

    class Handler(BaseHTTPRequestHandler):
        def _reply(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            status, text, headers = answer(self.command, self.path, self.headers, body)
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(text))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(b"" if self.command == "HEAD" else text)

        do_GET = do_HEAD = do_POST = _reply

        def log_message(self, *_: object) -> None:
            pass

    with ManyAtOnce(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
