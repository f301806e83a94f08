"""Writes the ``test_tipc`` folder of a repo that has none: ``tipcheck init`` without the talking.

``scan`` reads scripts, ``look`` finds them in a repo, ``lines`` writes configs with their options,
``tree`` puts configs and shell scripts together.
"""
