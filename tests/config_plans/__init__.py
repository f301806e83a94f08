"""Tests of the room that turns configs into plans."""
