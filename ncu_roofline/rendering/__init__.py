"""The drawing kit: tables, pictures and pages of any analysis; it knows no model, no analysis and no chip."""
