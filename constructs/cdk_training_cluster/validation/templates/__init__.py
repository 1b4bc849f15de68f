"""Rules that synthesized templates must meet."""
