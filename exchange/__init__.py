"""The vocabulary of the stock exchange: messages, measurements, run settings. No I/O happens here."""
