"""OpenAI's own client makes and collects a batch at an address; run by an environment that has it.

Prints the batch's status before and after it is told to end (a line on standard input), and the reply.
"""

import json
import sys

from openai import OpenAI
from openai.types.chat import ChatCompletion

client = OpenAI(base_url=sys.argv[1], api_key="none", max_retries=0)
body = {"model": "m", "messages": [{"role": "user", "content": "Question: Where?"}]}
line = json.dumps({"custom_id": "ab", "method": "POST", "url": "/v1/chat/completions", "body": body})
file = client.files.create(file=("one.jsonl", line.encode()), purpose="batch")
batch = client.batches.create(
    input_file_id=file.id, endpoint="/v1/chat/completions", completion_window="24h", metadata={"quit": "tag"}
)
print(batch.status, [each.id for each in client.batches.list(limit=100)], batch.metadata, flush=True)
sys.stdin.readline()
batch = client.batches.retrieve(batch.id)
[reply] = client.files.content(batch.output_file_id or "").text.splitlines()
completion = ChatCompletion.model_validate({"id": "1", "created": 0} | json.loads(reply)["response"]["body"])
print(batch.status, completion.choices[0].message.content)
