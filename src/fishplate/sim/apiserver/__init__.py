"""An API server in memory: the kinds that Fishplate uses, as kube-apiserver 1.36 serves them, on a real socket.

    store       objects, versions, history           types, conform   what a kind's fields are
    verbs       create, read, replace, patch, …      fieldsets …      who owns which field (server-side apply)
    server      the socket, TLS, tokens              validation …     what kube-apiserver would refuse

What it answers is compared, message for message, with recordings of the real one (tests/conformance/api).
"""
