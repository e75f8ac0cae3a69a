"""What the program makes of fixed inputs, and what it made of them when that was frozen.

``python -m tests.frozen`` makes it again and prints what differs; ``tests/test_frozen.py`` does the same. The
values lie beside this file, one JSON file a part and one entry a result. ``tests/README.md`` says how to freeze anew.
"""
