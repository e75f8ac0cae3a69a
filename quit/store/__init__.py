"""Where a workspace is: in a folder (:mod:`folder`), or in an object store behind a local copy (:mod:`remote`).

Every file is written under a temporary name, flushed and moved into place, or appears in one request to the store. What
killed runs were writing is removed by the next run.
"""
