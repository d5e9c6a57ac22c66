"""What people read in a terminal: progress, tables and notes."""
