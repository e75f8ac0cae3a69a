"""Groups of commands: part of the command line, the outermost layer."""
