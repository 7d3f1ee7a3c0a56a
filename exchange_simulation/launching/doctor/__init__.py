"""What this machine can measure: a look at each thing that a measurement needs, or suffers from.

Start reading at examination.py.
"""
