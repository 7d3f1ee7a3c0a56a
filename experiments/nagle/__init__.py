"""`exchange nagle`: what Nagle's algorithm does to completion time and packets, over several transports."""
