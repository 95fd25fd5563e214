"""What a trainer is: its fields, and which of them shape the program."""
