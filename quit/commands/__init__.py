"""Groups of commands; like :mod:`quit.cli`, part of the outermost layer."""
