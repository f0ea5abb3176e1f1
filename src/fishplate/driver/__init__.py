"""The node agent: publishes what is here, hands out what was allocated, and tells the truth about both."""
