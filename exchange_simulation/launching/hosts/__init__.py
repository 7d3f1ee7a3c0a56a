"""Runs whose components are on several hosts: the file that names them, what runs there, and the launcher's side.

launcher ── command prefix ── agent    one for each host: facts, free ports, clock, files
launcher ── command prefix ── relay    one for each component: starts it, and passes lines between it and the launcher

A command prefix runs the words behind it on another host, as `ssh HOST` does.
"""
