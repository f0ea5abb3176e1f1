package main

// minor is the Kubernetes minor version this binary was built against; the build sets it.
var minor = "unknown"
