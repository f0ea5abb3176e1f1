"""The hardware catalogue: VM sizes and servers, their GPUs, NICs, layouts and expected rates, and the VM-size grammar.

Nothing is imported here, so that a caller who only wants PCI names does not pay for the catalogue.
"""
