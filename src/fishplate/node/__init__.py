"""Readers of a host: sysfs, procfs, /dev and netlink, all below a root directory, all yielding an Inventory."""
