"""How a dataset is constructed: section 3 of *Inferential Question Answering*, one module a step, in this order.

| Section | Module | What it does |
|---|---|---|
| 3.1.1 | ``collect`` | pools source records into a collection of questions with hints |
| 3.1.2 | ``leakage`` | discards questions whose hints give an answer away |
| 3.1.2 | ``convergence`` | ranks hints by how far they narrow the candidate answers, and keeps the best |
| 3.1.3 | ``question_type``, ``difficulty``, ``describe`` | names each question's TREC type and difficulty |
| 3.1.4 | ``probe`` | asks readers without context: is the answer known to them already? |
| 3.1.4 | ``split`` | train, dev and test, stable as data grows |
| 3.2.1 | ``passages`` | enumerates every ordered selection of the hints |
| 3.2.2 | ``label`` | labels passages by what the labelers answer and the judge accepts |
| 3.2.4 | ``update`` | changes labels after people have reviewed them |

Each step is a function from tables to tables. It has a version, settings as arguments and rejects with reasons, and
knows nothing of paths, flows or progress bars.
"""
