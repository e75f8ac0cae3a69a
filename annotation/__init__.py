"""People's verdicts through Label Studio. Only this package knows its SDK and its server."""
