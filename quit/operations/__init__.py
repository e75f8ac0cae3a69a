"""Looking after a workspace: costs of a build, backups, garbage, checks of the installation."""
