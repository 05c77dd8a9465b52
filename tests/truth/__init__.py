"""Programs whose labels come from running them; `docs/truth.md` says what they are for."""
