"""Looking after a workspace: costs of a build, garbage, kept replies, checks of the installation."""
