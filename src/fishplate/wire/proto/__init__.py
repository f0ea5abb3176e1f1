"""Our .proto files, and the message classes that protoc makes of them (`make protos` after a change).

The classes are committed so that installing needs no compiler. Package names are our own: on these wires a message has
no name, and services are named where they are served.
"""
