"""What torch and the frameworks do: data and thin readers."""
