"""Objects of files: documents of YAML and JSON, and a `port.Lister` of their objects.
`yaml_documents` reads files; `listed_objects` is in memory.
May import `resources` and `schema`. An API server is neither started nor imported.
"""
