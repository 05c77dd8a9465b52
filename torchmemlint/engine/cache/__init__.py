"""What earlier runs found, kept for as long as it holds.

`kept` is what a run asks, `results` does it for one project, `store` is the file that the results lie in, `snapshot`
tells what has changed since, and `codec` turns findings into JSON and back.
"""
