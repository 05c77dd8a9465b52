"""1xx: graphs that outlive their step."""
