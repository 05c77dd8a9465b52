"""What rules see: who keeps which graph, which passes are never differentiated, and how sure that is."""
