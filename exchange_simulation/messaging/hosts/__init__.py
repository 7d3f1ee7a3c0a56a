"""Benchmarks whose roles are on several hosts: what runs there, and the launcher's side.

launcher ── prefix ── agent        one for each host: facts, free ports, clock, other work (launching/hosts/)
launcher ── prefix ── role server  one for each host with roles: forks them, and passes their words to the launcher
"""
