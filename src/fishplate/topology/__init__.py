"""What a host holds and how its devices relate. No I/O: plain values in, plain values out."""
