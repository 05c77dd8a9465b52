"""Checking on a Dask cluster.

`dask_executor.py` is this end: it hands out projects and takes results in. `remote.py` is what Dask runs on a worker:
it gives files to a process of ours (`child.py`), one for each thread of the worker. `sources.py` is what travels: all
of a project that the analysis may ask for. `stamp.py` tells whether both ends would find the same. Dask is imported by
`dask_executor.py` alone.
"""
