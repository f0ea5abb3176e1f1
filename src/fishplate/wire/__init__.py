"""Between bytes and typed values: the two wires a node driver hangs on.

The runtime's wire, NRI:

    nri             what is said: Pod, Container, Adjustment, Event; `PluginHandler`, which the driver implements
    nri_plugin      `Plugin`: connects, registers, serves the handler, connects again for ever; `PluginState`
    nri_runtime     `Runtime`: the other end, for the simulation and for tests
    nri_codec, nri_versions, nri_service      protobuf, what each runtime understands, methods to handler calls
    trunk, calls, ttrpc, mux                  a connection, its calls, messages, frames; only `trunk` does I/O

The kubelet's wire, gRPC:

    kubelet         what is said: ClaimRef, PreparedDevice, DeviceHealth; `DraHandler`, which the driver implements
    kubelet_server  `KubeletServer`: the service and registration sockets; `Registration`
    kubelet_client  `Kubelet`: the other end, for the simulation and for tests
    grpc_server, grpc_client                  methods and calls
    grpc_connection, grpc_frames, grpc_messages     HTTP/2 by `h2`, what of it may come in, gRPC's own bytes
    sockets         socket files: names, modes, stale ones

    proto/          our own .proto files and what protoc makes of them (`make protos`)

Nothing here knows what a NIC is. Only the `grpc_` modules import h2.
"""
