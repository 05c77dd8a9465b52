"""Operations: what a file does, without its syntax.

The vocabulary is in `ops`: a `Unit` is a file, a `Function` a body of structured blocks of three-address operations
over numbered temporaries. `lower` makes them, walking each function once; nothing else in flow walks a tree.
"""
