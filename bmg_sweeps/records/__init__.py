"""What is there: storage, manifests, records and attempts. It alone knows the files."""
