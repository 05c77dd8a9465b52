"""The language server: what `torchmemlint check` says, while the code is being written.

`app` speaks the protocol; `session` knows folders, settings and open documents, and checks them on a thread of its own
(`worker`); the other modules turn findings into what the protocol asks for, one kind of answer each.
"""
