"""A small model suite: configs, an engine, and models of a dozen families."""
