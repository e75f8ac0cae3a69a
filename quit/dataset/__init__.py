"""The labelled tables of a workspace or of a release, and their statistics: what exports, releases and systems read."""
