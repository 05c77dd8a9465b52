"""Rules about loading data and moving it to the device."""
