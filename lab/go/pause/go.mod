// The program of a pod's sandbox container: it waits, and that is all.
module fishplate.test/lab/pause

go 1.26.0
