"""Servers between two components: these files find, start, watch and end one.

private.py   a server of our own: a folder, a process, an address; it ends with us, however we end
programs.py  finds the program of a server: a variable, the environment of this Python, the PATH
"""
