"""`exchange doctor`: examines everything on this machine that a measurement needs or suffers from.

Start reading at examination.py.
"""
