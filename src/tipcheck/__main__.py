"""Makes ``python -m tipcheck`` the same as the ``tipcheck`` command."""

from tipcheck.cli.main import entry

if __name__ == "__main__":
    entry()
