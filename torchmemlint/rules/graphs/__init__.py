"""1xx: graphs, and samples, that outlive their step."""
