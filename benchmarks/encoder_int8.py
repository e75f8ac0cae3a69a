"""The int8 ONNX backend of sentence-transformers, for ``benchmarks/encoder.py --int8``.

It runs in a separate process because ``sentence-transformers[onnx]`` needs older packages.

Reads {folder, texts, threads, isa} as a line of JSON; then encodes the texts for each line and answers with one.
"""

import json
import sys
import tempfile

import onnxruntime
from sentence_transformers import SentenceTransformer, export_dynamic_quantized_onnx_model

task = json.loads(sys.stdin.readline())
session = onnxruntime.SessionOptions()
session.intra_op_num_threads = task["threads"]
options = {"provider": "CPUExecutionProvider", "session_options": session}
model = SentenceTransformer(task["folder"], backend="onnx", device="cpu", model_kwargs={**options, "export": True})
with tempfile.TemporaryDirectory() as folder:
    model.save_pretrained(folder)
    export_dynamic_quantized_onnx_model(model, task["isa"], folder)
    options["file_name"] = f"onnx/model_{'quint8' if task['isa'] == 'avx2' else 'qint8'}_{task['isa']}.onnx"
    model = SentenceTransformer(folder, backend="onnx", device="cpu", model_kwargs=options)
model.max_seq_length = 256
print("ready", flush=True)
for _ in sys.stdin:
    model.encode(task["texts"], show_progress_bar=False)
    print("encoded", flush=True)
