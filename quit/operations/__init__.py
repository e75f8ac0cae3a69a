"""Looking after a workspace: costs of a build, backups, garbage, kept replies, checks of the installation."""
