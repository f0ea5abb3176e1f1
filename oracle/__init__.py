"""The real Kubernetes code, asked through a small Go program, and the comparison of ours with it."""
