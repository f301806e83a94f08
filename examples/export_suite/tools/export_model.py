"""Exports the models of some configs, as the export scripts of model suites do."""

import argparse
import os
import sys

import yaml

sys.path.append(os.path.abspath(os.path.join(os.path.dirname(__file__), "..")))

from suite.config import merge_options, read_config
from suite.engine import Engine


def main():
    """Export each config that is named."""
    parser = argparse.ArgumentParser(description="export models")
    parser.add_argument("-c", "--config", nargs="+", required=True, help="config files")
    parser.add_argument("-o", "--opt", nargs="*", default=[], help="Global.save_dir=out and so on")
    options = parser.parse_args()
    for path in options.config:
        try:
            config = read_config(path)
        except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
            parser.error(f"{path} cannot be read: {' '.join(str(error).split())}")
        Engine(merge_options(config, options.opt), path).export()


if __name__ == "__main__":
    main()
