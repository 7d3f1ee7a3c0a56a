"""What a frame is on a cable, bytes (IEEE 802.3)."""

LARGEST_FRAME = 1514
"""An MTU of 1500 and the Ethernet header."""
SMALLEST_FRAME = 60
"""Shorter ones are padded."""
FRAMING = 24
"""What a frame takes beside itself: preamble 8, checksum 4, gap 12."""
