"""The functions of the DRA environments, one module a library."""
