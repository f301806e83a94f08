"""Reads configs, and changes them by options of the command line."""

import yaml


def read_config(path):
    """Return a config as nested dicts."""
    with open(path, encoding="utf-8") as file:
        return yaml.safe_load(file)


def merge_options(config, options):
    """Set ``A.b=value`` in a config."""
    for option in options:
        key, _, value = option.partition("=")
        place = config
        *parents, last = key.split(".")
        for parent in parents:
            place = place.setdefault(parent, {})
        place[last] = yaml.safe_load(value)
    return config
