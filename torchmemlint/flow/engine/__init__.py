"""Running functions on symbols: operations, calls, loops, and summaries.

`transfer` has a function for each operation. `memory` and `access` are the one way of writing and reading places.
`loops` finds what grows. `binding` lays out arguments, `calls` calls, `substitution` replays what a summary says.
"""
