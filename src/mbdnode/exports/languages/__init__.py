"""What is printed: a language is a printer of the loops, and a library of what it lacks."""
