"""Installed Python modules offered as skills."""
