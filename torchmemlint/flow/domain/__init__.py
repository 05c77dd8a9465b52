"""What values, objects and graphs are, without syntax and without rules.

`refs`: what a value may point to, and where graphs come from. `values`: what a place may hold. `heap`: which object
holds what. `provenance`: what each graph was made from, and in which loops. `effects`: what a caller must know of a
call. All of it is plain data; the engine computes with it.
"""
