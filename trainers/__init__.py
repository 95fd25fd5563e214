"""The paper's experimental settings, one a module; the folder is the registry."""
