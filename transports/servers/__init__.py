"""Servers that stand between two components: how one is found, started, watched and ended.

private.py   a server of our own: a folder, a process, an address; it ends with us, however we end
programs.py  finds the program of a server: a variable, the environment of this Python, the PATH
"""
