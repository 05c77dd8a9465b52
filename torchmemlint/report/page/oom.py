"""x"""


def oom_page(*a):
    raise NotImplementedError
