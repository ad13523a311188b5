"""What kubectl needs besides plain objects: discovery, tables, patch formats, protobuf.
Pure.
May import `registry` and `schema`.
"""
