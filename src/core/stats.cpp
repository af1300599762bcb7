// Placeholder: its owner fills it.
