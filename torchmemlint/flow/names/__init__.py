"""Which function, class or variable of the project a name stands for."""
