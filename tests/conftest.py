"""No test uses results of earlier runs, or leaves any in the user's cache directory, but for those about that."""

import os

os.environ["TORCHMEMLINT_NO_CACHE"] = "1"
