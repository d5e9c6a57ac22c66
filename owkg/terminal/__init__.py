"""Text that people read: progress, tables of terminals and of LaTeX."""
